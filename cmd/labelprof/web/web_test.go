// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

const hostile = "</script><img src=x onerror=alert(1)>\u202e\x00"

func newHandler(t *testing.T) http.Handler { return newHandlerOf(t, true) }

func newHandlerOf(t *testing.T, live bool) http.Handler {
	t.Helper()
	store := samplestore.New(1 << 24)
	store.Batch(func(add func(*samplestore.Sample)) {
		for i, tenant := range []string{"acme", "acme", "globex", hostile} {
			add(&samplestore.Sample{
				Labels: []samplestore.Label{{Key: "tenant", Value: tenant}},
				Stack:  []*samplestore.Location{{Type: "native", Lines: []samplestore.Line{{Function: samplestore.Function{Name: "run"}}}}},
				Points: []samplestore.Point{{TimeNs: int64(i) * 1e9, Hits: 1, Ns: 100}},
			})
		}
	})
	h, err := New(Config{
		Store: store, By: []string{"tenant", "route"}, Hosts: []string{"devbox"},
		State: func() (string, bool) { return "a test", live },
		Notes: func() []string { return []string{"1 malformed samples ignored"} },
		WriteProfile: func(w io.Writer, q *samplestore.Query) error {
			if len(q.Filters) == 0 {
				return errors.New("no room: filter them")
			}
			_, err := io.WriteString(w, strings.Repeat("x", len(q.Filters)))
			return err
		},
	})
	require.NoError(t, err)
	return h
}

func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7317"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func view(t *testing.T, h http.Handler, query string) answer {
	t.Helper()
	w := get(t, h, "/api/view?"+query)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	var a answer
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a))
	return a
}

func TestView(t *testing.T) {
	h := newHandler(t)
	a := view(t, h, "")
	require.Equal(t, "tenant", a.By)
	require.Equal(t, samplestore.Sides{400, 0}, a.Ns)
	require.Equal(t, []string{"1 malformed samples ignored"}, a.Notes)
	require.Len(t, a.Series.Values, 3)
	require.Equal(t, "run", a.Functions[0].Frame[0])
	require.Equal(t, facetValue{"acme", 200}, a.Facets[0].Values[0])

	require.EqualValues(t, 200, view(t, h, "l.tenant=acme").Ns[0])
	require.EqualValues(t, 300, view(t, h, "l.tenant=acme&l.tenant=globex").Ns[0])
	require.EqualValues(t, 100, view(t, h, "l.tenant="+url.QueryEscape(hostile)).Ns[0])
	require.Zero(t, view(t, h, "n.tenant").Ns[0])
	require.EqualValues(t, 100, view(t, h, "from=1000&to=2000").Ns[0])
	require.EqualValues(t, 400, view(t, h, "fn=run&frame=native&module=").Ns[0])
	require.Zero(t, view(t, h, "kind=off_cpu").Ns[0])
	require.Equal(t, samplestore.Sides{200, 100}, view(t, h, "cmp=tenant&a=acme&b=globex").Ns)
	require.Equal(t, samplestore.Sides{0, 200}, view(t, h, "cmp=tenant&b=acme").Ns)
	require.Equal(t, samplestore.Sides{100, 200}, view(t, h, "afrom=0&ato=1000&bfrom=1000&bto=3000&from=5&to=6&cmp=tenant").Ns)
	require.EqualValues(t, 400, view(t, h, "q=RU").Found[0])
	grouped := view(t, h, "group=tenant")
	require.Equal(t, frame{"acme", "", "", "value"}, grouped.Tree.Frames[grouped.Tree.Frame[1]])
	require.Equal(t, samplestore.Sides{200, 0}, grouped.Tree.Total[1])
	require.Equal(t, frame{"", "", "", "none"}, view(t, h, "group=nothing").Tree.Frames[0])
	zoomed := view(t, h, "zoom="+a.Tree.ID[1])
	require.Equal(t, 1, zoomed.Tree.Zoom)

	w := get(t, h, "/api/view?have="+a.Version)
	require.JSONEq(t, `{"unchanged": true, "source": "a test", "live": true}`, w.Body.String())
	w = get(t, h, "/api/profile?l.tenant=acme")
	require.Equal(t, "x", w.Body.String())
	require.Contains(t, w.Header().Get("Content-Disposition"), "attachment")
}

// TestLastView: who has all samples and asks when nothing comes any more has the last notes, too.
func TestLastView(t *testing.T) {
	h := newHandlerOf(t, false)
	a := view(t, h, "have="+view(t, h, "").Version)
	require.Equal(t, []string{"1 malformed samples ignored"}, a.Notes)
	require.False(t, a.Live)
}

// TestProfileWithoutRoom: a browser shows why, and saves nothing.
func TestProfileWithoutRoom(t *testing.T) {
	h := newHandler(t)
	w := get(t, h, "/api/profile")
	require.Equal(t, http.StatusInsufficientStorage, w.Code)
	require.Equal(t, "no room: filter them\n", w.Body.String())
	require.Empty(t, w.Header().Get("Content-Disposition"))
	require.Contains(t, w.Header().Get("Content-Type"), "text/plain")
	// With this attribute a browser saves the text, or shows nothing of it.
	require.NotContains(t, get(t, h, "/").Body.String(), "download=")
}

func TestBadQueries(t *testing.T) {
	h := newHandler(t)
	for _, query := range []string{"kind=wall", "to=x", "ato=1", "afrom=1&ato=2&bto=3", "from=&to=1", "zoom=-1", "%zz", strings.Repeat("l.a=b&", samplestore.MaxFilters+1)} {
		require.Equal(t, http.StatusBadRequest, get(t, h, "/api/view?"+query).Code, query)
	}
}

func TestAssets(t *testing.T) {
	h := newHandler(t)
	for path, kind := range map[string]string{"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/icon.svg": "image/svg", "/LICENSES.txt": "text/plain"} {
		w := get(t, h, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Header().Get("Content-Type"), kind)
		require.NotEmpty(t, w.Body.String())
		again := get(t, h, path, "If-None-Match", w.Header().Get("ETag"))
		require.Equal(t, http.StatusNotModified, again.Code)
	}
	require.Equal(t, http.StatusNotFound, get(t, h, "/dist/page.js").Code)
	page := get(t, h, "/").Body.String()
	require.NotContains(t, page, "://", "nothing is loaded from elsewhere")
	require.NotContains(t, page, "<style", "the policy allows none")
	require.Contains(t, get(t, h, "/LICENSES.txt").Body.String(), "d3-flame-graph 5.0.0 (Apache-2.0)")
}

// TestGuard: no other page of the browser gets anything from here.
func TestGuard(t *testing.T) {
	h := newHandler(t)
	policy := get(t, h, "/").Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "script-src 'self';")
	require.NotContains(t, policy, "unsafe")
	for host, code := range map[string]int{
		"localhost:7317": 200, "LOCALHOST": 200, "127.0.0.1": 200, "127.9.9.9:80": 200, "[::1]:7317": 200, "[::1]": 200, "192.0.2.1:7317": 200,
		"devbox": 200, "DevBox:7317": 200,
		"evil.example": 421, "evil.example:7317": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 421, "[": 421, "devbox.evil": 421,
	} {
		require.Equal(t, code, get(t, h, "/api/view", "Host", host).Code, host)
		require.Equal(t, code, get(t, h, "/", "Host", host).Code, host)
	}
	for _, site := range []string{"cross-site", "same-site"} {
		require.Equal(t, http.StatusForbidden, get(t, h, "/api/view", "Sec-Fetch-Site", site).Code)
		require.Equal(t, http.StatusForbidden, get(t, h, "/page.js", "Sec-Fetch-Site", site).Code)
		require.Equal(t, http.StatusOK, get(t, h, "/", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate").Code, "a link")
	}
	require.Equal(t, http.StatusOK, get(t, h, "/api/view", "Sec-Fetch-Site", "same-origin").Code)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://localhost/api/view", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
}

func FuzzQuery(f *testing.F) {
	f.Add("group=a&afrom=0&ato=2000&bfrom=1&bto=3000")
	f.Add("kind=off_cpu&from=1&to=2&l.a=b&n.c&fn=x&zoom=ff&cmp=k&a=1")
	store := samplestore.New(1 << 20)
	store.Batch(func(add func(*samplestore.Sample)) {
		add(&samplestore.Sample{Labels: []samplestore.Label{{Key: "a", Value: "b"}}, Points: []samplestore.Point{{TimeNs: 1e9, Hits: 1, Ns: 1}}})
	})
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery(raw)
		if err != nil {
			return
		}
		v := store.Query(q)
		_, err = json.Marshal(newAnswer(&v))
		require.NoError(t, err)
		require.LessOrEqual(t, v.Ns.Sum(), int64(1))
	})
}
