// SPDX-License-Identifier: Apache-2.0

package weight

import "google.golang.org/protobuf/encoding/protowire"

// Shape says what a message of protobuf takes in memory when it is decoded and looked up.
type Shape struct {
	Bytes  int64 // of one, with what is made of it
	Fields Fields
}

// Fields are the fields that take more than a number, by their numbers.
type Fields map[protowire.Number]Field

// Field is a field whose bytes become something; others are numbers, or skipped.
type Field struct {
	PerByte int64  // bytes of memory
	Message *Shape // nil: none
}

const (
	// scalarBytes is what a number takes that may be one of a growing list.
	scalarBytes = 16
	// entryHeadBytes is what an entry of a table takes besides itself: its place in a
	// list that grows, and a place among those that are known.
	entryHeadBytes = 100
)

// Text is a field with a string.
func Text() Field { return Field{PerByte: 1, Message: &Shape{Bytes: entryHeadBytes}} }

// Varints is a field with packed numbers of 64 bits each.
func Varints() Field { return Field{PerByte: scalarBytes} }

// Indexes is a field with packed numbers of 32 bits each.
func Indexes() Field { return Field{PerByte: scalarBytes / 2} }

// Fixed64s is a field with packed numbers of eight bytes, which become points in time.
func Fixed64s() Field { return Field{PerByte: 8} }

// Message is a field with a message.
func Message(s *Shape) Field { return Field{Message: s} }
