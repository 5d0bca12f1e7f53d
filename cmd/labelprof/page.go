// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/web"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// Bounds of what browsers may do.
const (
	maxPageConnections = 32
	maxPageHeaderBytes = 64 << 10 // a URL has all filters in it
	pageReadTimeout    = 10 * time.Second
	pageWriteTimeout   = 2 * time.Minute // of a profile to a slow browser
	pageIdleTimeout    = time.Minute
	pageDrainTimeout   = 2 * time.Second
)

// pageFlags are the flags of the page.
type pageFlags struct {
	listen string
	hosts  commaList
}

func (p *pageFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&p.listen, "web", "127.0.0.1:7317", "`address` of the page with flame graphs; \"\": no page")
	flags.Var(&p.hosts, "web-host", "`names` of this host under which the page may be opened, besides addresses and localhost")
}

// page serves what the sink's store has.
type page struct {
	listener *listener
	server   *http.Server
	served   chan error
}

// newPage listens and serves in the background.
func newPage(flags *pageFlags, by []string, s *sink, source string, live bool) (*page, error) {
	handler, err := web.New(web.Config{
		Store: s.store, Source: source, Live: live, By: by[0], Hosts: flags.hosts,
		WriteProfile: func(w io.Writer, q *samplestore.Query) error { return writeSelection(w, s.store, q) },
		Notes:        s.storeNotes,
	})
	if err != nil {
		return nil, err
	}
	listener, err := listen(flags.listen, maxPageConnections)
	if err != nil {
		return nil, fmt.Errorf("listen for the page (--web chooses another address): %w", err)
	}
	p := &page{
		listener: listener,
		server: &http.Server{
			Handler: handler, ReadTimeout: pageReadTimeout, WriteTimeout: pageWriteTimeout, IdleTimeout: pageIdleTimeout,
			MaxHeaderBytes: maxPageHeaderBytes,
			ErrorLog:       stdlog.New(io.Discard, "", 0), // what a browser sends is not for the terminal
		},
		served: make(chan error, 1),
	}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// url is what to open in a browser on this host.
func (p *page) url() string { return "http://" + p.listener.Addr().String() + "/" }

// stop finishes the answers under way, and gives up those that take too long.
func (p *page) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), pageDrainTimeout)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		p.server.Close()
	}
	if err := <-p.served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// storeNotes are the counters of what never reached the store.
func (s *sink) storeNotes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var notes []string
	if s.malformed > 0 {
		notes = append(notes, fmt.Sprintf("%d malformed samples ignored", s.malformed))
	}
	if s.ignored > 0 {
		notes = append(notes, fmt.Sprintf("%d profiles ignored that are neither of CPU nor of off-CPU time", s.ignored))
	}
	return notes
}

// writeSelection writes what a query selects as a pprof profile.
func writeSelection(w io.Writer, store *samplestore.Store, q *samplestore.Query) error {
	p := newPprofProfile(maxPprofBytes)
	if q.Kind == samplestore.OffCPU {
		p.offCPU()
	}
	noProcess := &process{}
	var s sample
	from, to := store.Export(q, func(e *samplestore.Entry) {
		s = sample{hits: e.Hits, cpuNs: e.Ns, process: noProcess, stack: e.Stack, attributes: s.attributes[:0]}
		if e.Hits > 0 && q.Kind == samplestore.OnCPU {
			s.periodNs = e.Ns / e.Hits
		}
		for _, l := range e.Labels {
			s.attributes = append(s.attributes, exported(l))
		}
		p.add(&s)
	})
	p.span(uint64(max(from, 0))*1e6, uint64(max(to+1, 0))*1e6)
	return p.profile.Write(w)
}
