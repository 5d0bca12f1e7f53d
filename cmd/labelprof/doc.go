// SPDX-License-Identifier: Apache-2.0

// Command labelprof is the far end of a profiles pipeline, for looking at labelled
// CPU profiles without a backend.
//
//	labelprof serve    receives profiles, or reads files, and shows CPU by label
//	labelprof top      prints the same tables of files
//	labelprof pprof    converts files to pprof
//	labelprof push     sends files to Pyroscope
//	labelprof inspect  shows which labels a process publishes now
//	labelprof check    judges by the specifications what a process or command publishes
//
// labelprof help COMMAND has the flags.
//
// serve receives OTLP profiles by gRPC, shows CPU by the values of the labels named
// and the hottest functions of each, live on a terminal, and stops by itself after
// --duration, or at SIGINT, SIGTERM or SIGHUP. Its page has flame graphs, see package web. Given
// files, serve shows these instead of receiving. top prints the tables for files: protobuf
// export requests, one or many with a length of four bytes (big-endian) before each,
// or JSON, one request a line; that is what the collector's file exporter writes.
// Gzipped pprof files with CPU or off-CPU time are read, too.
// pprof turns files into one file for `go tool pprof`, with labels as tags:
//
//	go tool pprof -top -tagfocus=tenant=acme OUT.pb.gz
//
// Labels are texts there, process.pid and thread.id numbers. pprof takes a value that
// looks like a number for a range of numbers; `-tagfocus='tenant=^42$'` finds the text.
//
// A key given as `tenant` finds the sample attribute `tenant`, else
// `process.context.label.tenant`, else the resource attribute `tenant`.
//
// Off-CPU profiles are shown beside: the time that threads with these labels were off the
// CPU, and the functions that they left it in. One sample counts at most 2^50 ns, 13 days,
// weighted or not. A pprof file has it as a sample type of its
// own, with why a thread was off the CPU as a tag:
//
//	go tool pprof -top -sample_index=off_cpu -tagignore=custom_labels.thread_state=runnable OUT.pb.gz
//
// Truth files come from programs that measure the CPU time of their own label sets
// (mode shares of testdata/writers); what was sampled in these processes is shown
// beside it.
//
// push sends what files have to Grafana Pyroscope (POST /ingest), a service at a time, with
// labels; see package push.
//
// inspect looks into processes: which label sources they have, how the thread-local
// variables are reached and where they are, and what each thread has in them now; or
// why there are none. It finds sources with the receiver's own code (process.Inspect), so
// that what it says holds for samples; only the last step, the labels of a thread, is read by
// other code than BPF (package labelread). Each thread is stopped while it is read, one at a time, for
// some 50 to 200 microseconds, longer on a busy machine; see internal/labelread for
// what else that does to a thread. It needs root or CAP_SYS_PTRACE.
//
// check judges a program that publishes, rule by rule of the specifications; see package
// writercheck. It exits with 1 if a rule is broken, with 2 if there was nothing to judge by.
//
// Everything received or read is untrusted. Indexes are checked, values are escaped before
// they reach the terminal, and memory is bounded: what exceeds a bound is counted,
// summed up as (others) in the tables, and left out of the pprof file. What a request or
// file would take decoded is estimated before it is decoded, from its bytes alone, and
// refused above --max-memory: two bytes of protobuf can stand for hundreds in memory. gRPC
// decodes before it calls a handler, so Export is served as a stream of one message. Where many want to send, the connection that has been silent
// longest ends. Files that are written are for their owner only.
//
// main only picks a command. Commands are in files (top, pprof), serve, push, inspect and check, what they
// share in command; samples come from otlp and pprof by way of input, and go through sink to
// table, pprof and pagestore.
package main
