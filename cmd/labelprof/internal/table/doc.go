// SPDX-License-Identifier: Apache-2.0

// Package table sums CPU time, and time off the CPU, by the values of some labels, and prints
// it: a row for each combination of values, the hottest functions of each, and, where
// programs tell the CPU time of their own label sets, how far the two are apart.
//
// Rows are told apart by where a value ends, whatever bytes it has; a label that is absent is
// not an empty one. What is kept is bounded; what finds no room is in a row of (others) and
// counted. A Table is not safe for concurrent use.
package table
