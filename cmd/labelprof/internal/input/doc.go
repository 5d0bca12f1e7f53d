// SPDX-License-Identifier: Apache-2.0

// Package input reads files of profiles, told apart by their first bytes, and decodes them and
// what is received within one bound of memory.
//
// Files are protobuf export requests of OTLP, one or many with a length of four bytes
// (big-endian) before each, or JSON, one request a line, or gzipped profiles of pprof. All of
// them are untrusted: a length may lie, a packed file may be a million times as large, and
// what is decoded is weighed before. One at a time is decoded, so that the bound holds for
// any number of clients.
//
// A file may end within a request: its disk was full, its writer was killed, or still writes.
// What is before counts, and the consumer is told of the rest.
package input
