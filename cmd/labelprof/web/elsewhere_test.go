// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// A link of another site leads to the page and to nothing else of this server.
func TestLinkFromElsewhere(t *testing.T) {
	h := newHandler(t)
	for path, code := range map[string]int{
		"/": http.StatusOK, "/api/view": http.StatusForbidden, "/api/profile": http.StatusForbidden, "/page.js": http.StatusForbidden,
	} {
		for _, site := range []string{"cross-site", "same-site"} {
			w := get(t, h, path, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate")
			require.Equal(t, code, w.Code, path)
		}
	}
}

// A side of a comparison without a value is what has no such label; one with an empty
// value is what has it so.
func TestCompareWithoutValue(t *testing.T) {
	q, err := parseQuery("cmp=tenant&a=")
	require.NoError(t, err)
	require.Equal(t, &samplestore.Compare{Key: "tenant", A: samplestore.Value{Present: true}}, q.Compare)
}
