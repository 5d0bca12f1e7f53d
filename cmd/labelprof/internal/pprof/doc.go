// SPDX-License-Identifier: Apache-2.0

// Package pprof reads profiles of pprof into samples, and gathers samples of any origin into
// one profile for `go tool pprof`, or for whom else names tags in a way of its own.
//
// A profile is weighed before it is decoded. Of the kinds of time that one can have, CPU time
// and off-CPU time are read. In what is written, labels become tags under the keys that
// programs gave them, as texts; process.pid and thread.id are numbers. A profile in memory is
// bounded: what has no room is counted and left out.
package pprof
