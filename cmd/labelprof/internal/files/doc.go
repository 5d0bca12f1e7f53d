// SPDX-License-Identifier: Apache-2.0

// Package files is the commands that read files and end: top, which prints the tables, and
// pprof, which makes one file for `go tool pprof` of them.
package files
