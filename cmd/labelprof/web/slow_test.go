// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowBrowser takes nothing of its answer until it goes.
type slowBrowser struct {
	*httptest.ResponseRecorder
	writes, goes chan struct{}
}

func (s *slowBrowser) Write(b []byte) (int, error) {
	s.writes <- struct{}{}
	<-s.goes
	return len(b), nil
}

// TestSlowBrowsers: those that do not read their answers keep nobody else waiting.
func TestSlowBrowsers(t *testing.T) {
	h := newHandler(t)
	goes, ended := make(chan struct{}), make(chan struct{})
	slow := []string{"/api/profile?l.tenant=acme", "/api/view", "/api/view", "/api/view"}
	for _, path := range slow {
		w := &slowBrowser{httptest.NewRecorder(), make(chan struct{}), goes}
		go func() {
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7317"+path, nil))
			ended <- struct{}{}
		}()
		select {
		case <-w.writes:
		case <-time.After(time.Minute):
			t.Fatalf("%s is kept waiting", path)
		}
	}
	require.EqualValues(t, 400, view(t, h, "").Ns[0])
	close(goes)
	for range slow {
		<-ended
	}
}
