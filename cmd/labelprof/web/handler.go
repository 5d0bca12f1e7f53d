// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// Bounds of what is worked on at once; others wait.
const (
	maxQueries  = 2
	maxProfiles = 1 // one is large, and has its place until it is written
)

// Config is what the page shows.
type Config struct {
	Store *samplestore.Store
	// State says where the samples are from, for people, and whether more may come; called for
	// each answer.
	State func() (source string, live bool)
	// By are label keys that the page lists first; it tells samples apart by the first of them.
	By []string
	// Hosts are names of this host under which the page may be asked for, besides its
	// addresses and localhost.
	Hosts []string
	// WriteProfile writes what a query selects as a gzipped pprof profile. It fails before the
	// first byte, with an error for people, or because it cannot write.
	WriteProfile func(w io.Writer, q *samplestore.Query) error
	// Notes tells what was left out, for people; called for each answer.
	Notes func() []string
}

// handler answers the page.
type handler struct {
	Config
	// A place for each that is worked on.
	queries, profiles chan struct{}
}

// New returns the handler of the page and its interface.
func New(cfg Config) (http.Handler, error) {
	files, err := assets()
	if err != nil {
		return nil, err
	}
	h := &handler{Config: cfg, queries: make(chan struct{}, maxQueries), profiles: make(chan struct{}, maxProfiles)}
	mux := http.NewServeMux()
	for path, file := range files {
		if path == "/" {
			path = "/{$}"
		}
		mux.HandleFunc(path, file.serve)
	}
	mux.HandleFunc("/api/view", limited(h.queries, h.view))
	mux.HandleFunc("/api/profile", limited(h.profiles, h.profile))
	return guard(cfg.Hosts, mux), nil
}

// limited parses the query and waits for a place to work on it. What the answer returns is
// written when another one has the place: a browser may be slow.
func limited(places chan struct{}, answer func(http.ResponseWriter, *http.Request, *samplestore.Query) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		q, err := parseQuery(r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case places <- struct{}{}:
			rest := func() []byte {
				defer func() { <-places }()
				return answer(w, r, q)
			}()
			_, _ = w.Write(rest) // a browser that went away
		case <-r.Context().Done(): // the browser does not wait any more
		}
	}
}

// view answers with everything that is on the page, or that nothing has changed.
func (h *handler) view(w http.ResponseWriter, r *http.Request, q *samplestore.Query) []byte {
	w.Header().Set("Content-Type", "application/json")
	var out any
	source, live := h.State()
	// Who asks when nothing comes any more asks for the last time: the notes may have changed.
	if have := r.URL.Query().Get("have"); live && have != "" && have == fmt.Sprint(h.Store.Status().Version) {
		out = struct {
			Unchanged bool   `json:"unchanged"`
			Source    string `json:"source"`
			Live      bool   `json:"live"`
		}{true, source, live}
	} else {
		begin := time.Now()
		if q.First = h.By; q.By == "" {
			q.By = h.By[0]
		}
		v := h.Store.Query(q)
		a := newAnswer(&v)
		a.Source, a.Live, a.By, a.Notes = source, live, q.By, h.Notes()
		a.TookMs = float64(time.Since(begin).Microseconds()) / 1e3
		out = a
	}
	var encoded bytes.Buffer
	_ = json.NewEncoder(&encoded).Encode(out) // it has nothing that cannot be
	return encoded.Bytes()
}

// profile answers with what is on the page as a pprof file.
func (h *handler) profile(w http.ResponseWriter, _ *http.Request, q *samplestore.Query) []byte {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="labelprof.pb.gz"`)
	if err := h.WriteProfile(w, q); err != nil { // also of a browser that went away
		w.Header().Del("Content-Disposition")
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	}
	return nil
}
