// SPDX-License-Identifier: Apache-2.0

// Package otlp reads and writes OTLP profiles: export requests in protobuf and JSON into
// samples, and batches into requests of a file.
//
// A request is weighed before it is decoded, and indexes are checked when they are looked up:
// a sample that refers to what is not there, or claims what cannot be, is counted and left
// out, alone. On-CPU profiles come as a count of samples or as CPU time, off-CPU profiles as
// time; profiles of anything else are counted.
package otlp
