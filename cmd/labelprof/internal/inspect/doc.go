// SPDX-License-Identifier: Apache-2.0

// Package inspect is the command that looks into processes: which label sources they have, how
// the thread-local variables are reached and where they are, and what each thread has in
// them now; or why there are none.
//
// Sources are found by the receiver's own code (process.Inspect), so that what is said holds
// for samples; labels are read by package labelread, apart from BPF. Each thread is stopped
// while it is read, one at a time. All that comes from a process is escaped.
package inspect
