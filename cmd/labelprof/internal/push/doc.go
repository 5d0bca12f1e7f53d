// SPDX-License-Identifier: Apache-2.0

// Package push is `labelprof push`: what files have, as pprof with labels, to the HTTP
// interface of Grafana Pyroscope, POST /ingest, as its page "Server HTTP API" documents it
// (https://grafana.com/docs/pyroscope/latest/reference-server-api/).
//
// Pyroscope takes one service a request, so samples are gathered by service.name, and CPU and
// off-CPU time apart, because what a profile is of is said once for all of it. A profile goes
// when it nears the size that Pyroscope takes, and at the end: memory is bounded by what is
// gathered at once.
//
// A sample is sent once: again only after an answer, or a failure to connect, which says that
// it was not taken. Where a connection ends before the answer, nobody knows, and push fails
// with that. The server is not trusted: its answers are read to a bound, escaped before they
// reach the terminal, and redirections are not followed. The token is in the environment, goes
// nowhere but into the header, and not over a network without TLS.
package push
