// SPDX-License-Identifier: Apache-2.0

// Package pagestore is the way of samples into the store behind the page, and of what the
// page selects out of it, as a profile of pprof.
//
// In the store all texts are UTF-8, and labels are under the keys that programs gave them. Of
// two with one key, what the kernel says comes first, then the trace, then what programs say of
// themselves: no label can pass for a PID, and the other one stays under its longer key.
package pagestore
