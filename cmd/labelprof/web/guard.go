// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard lets through what a page of this origin asks, and nothing else. It adds the
// headers that keep a browser from doing more with an answer than showing it.
func guard(hosts []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
		case !hostAllowed(r.Host, hosts):
			http.Error(w, "this host name is not of this page: start labelprof with --web-host NAME to allow it", http.StatusMisdirectedRequest)
		case fromElsewhere(r):
			http.Error(w, "only for the page itself", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// hostAllowed says whether a browser may know this server under the name. Addresses cannot
// be bound to another server, and localhost is always this machine; any other name could
// be somebody else's that now leads here.
func hostAllowed(host string, allowed []string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, name) })
}

// fromElsewhere says whether another site asks. It may link to the page, but not ask for
// anything by itself.
func fromElsewhere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	default:
		return r.URL.Path != "/" || r.Header.Get("Sec-Fetch-Mode") != "navigate"
	}
}
