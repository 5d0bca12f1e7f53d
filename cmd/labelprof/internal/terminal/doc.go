// SPDX-License-Identifier: Apache-2.0

// Package terminal is about what is printed for people: texts of strangers made safe for a
// terminal, columns, and how much of them a terminal shows.
//
// Labels, names and paths are whatever programs publish. What goes through Escape has nothing
// that moves a cursor, sets a title or turns the direction of writing, and stays unambiguous.
package terminal
