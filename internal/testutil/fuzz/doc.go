// SPDX-License-Identifier: Apache-2.0

// Package fuzz runs fuzz targets that take bytes in two ways: under Go's
// coverage-guided engine, which finds new paths at some ten thousand executions
// a second, and in a plain loop of this process, which mutates what the engine
// has found so far and is one to two orders of magnitude faster.
//
// The loop is deterministic: the same seed, corpus and number of executions make
// the same inputs. An input that fails is kept where Go's engine keeps its own,
// so that `go test` repeats it from then on.
//
// Where a parser is small, its target compares with a second one written for the test.
package fuzz
