// SPDX-License-Identifier: Apache-2.0

// Package web is the page of labelprof: flame graphs, tables and time strips of the
// samples in a store, and the HTTP interface that the page asks.
//
// The page is built from src by esbuild (`make web`) into dist, which is committed and
// embedded, so that neither users nor ocb need npm; nothing is loaded from elsewhere. All
// sums are made here and not in the browser: what the page gets is bounded, however many
// samples there are.
//
// Labels, names of functions and paths are whatever programs publish. They travel as JSON
// and become text nodes, never markup, and the Content-Security-Policy allows no inline
// script or style, should one slip through. The interface only reads, and only for pages
// of its own origin: requests under another host name are refused (DNS rebinding), as are
// requests from other sites.
package web
