// SPDX-License-Identifier: Apache-2.0

package main

import "google.golang.org/protobuf/encoding/protowire"

// shape says what a message of protobuf takes in memory when it is decoded and looked up.
type shape struct {
	bytes  int64 // of one, with what is made of it
	fields map[protowire.Number]field
}

// field is a field whose bytes become something; others are numbers, or skipped.
type field struct {
	perByte int64
	message *shape // nil: none
}

const (
	// scalarBytes is what a number takes that may be one of a growing list.
	scalarBytes = 16
	// entryHeadBytes is what an entry of a table takes besides itself: its place in a
	// list that grows, and a place among those that are known.
	entryHeadBytes = 100
)

func text() field            { return field{perByte: 1, message: &shape{bytes: entryHeadBytes}} }
func varints() field         { return field{perByte: scalarBytes} } // 64 bits each
func indexes() field         { return field{perByte: scalarBytes / 2} }
func fixed64s() field        { return field{perByte: 8} } // they become points in time
func message(s *shape) field { return field{message: s} }

// requestShape is an export request of OTLP profiles, as pdata decodes it
// (opentelemetry/proto/profiles/v1development/profiles.proto) and dictionary looks it up.
func requestShape() *shape {
	value := &shape{bytes: 48}
	pair := &shape{bytes: 200, fields: map[protowire.Number]field{1: text(), 2: message(value)}}
	list := message(&shape{bytes: 64, fields: map[protowire.Number]field{1: message(value)}})
	pairs := message(&shape{bytes: 64, fields: map[protowire.Number]field{1: message(pair)}})
	value.fields = map[protowire.Number]field{1: text(), 5: list, 6: pairs, 7: text()}

	entity := &shape{bytes: 160, fields: map[protowire.Number]field{1: text(), 2: text(), 3: text(), 4: text()}}
	resource := &shape{bytes: 160, fields: map[protowire.Number]field{1: message(pair), 3: message(entity)}}
	scope := &shape{bytes: 100, fields: map[protowire.Number]field{1: text(), 2: text(), 3: message(pair)}}
	sample := &shape{bytes: 140, fields: map[protowire.Number]field{2: indexes(), 4: varints(), 5: fixed64s()}}
	profile := &shape{bytes: 300, fields: map[protowire.Number]field{
		1: message(&shape{}), 2: message(sample), 5: message(&shape{}), 9: text(), 10: text(), 11: indexes(),
	}}
	scopeProfiles := &shape{bytes: 200, fields: map[protowire.Number]field{1: message(scope), 2: message(profile), 3: text()}}
	resourceProfiles := &shape{bytes: 300, fields: map[protowire.Number]field{1: message(resource), 2: message(scopeProfiles), 3: text()}}

	location := &shape{bytes: 500, fields: map[protowire.Number]field{3: message(&shape{bytes: 200}), 4: indexes()}}
	dictionary := &shape{fields: map[protowire.Number]field{
		1: message(&shape{bytes: 150, fields: map[protowire.Number]field{5: indexes()}}), // mappings
		2: message(location),
		3: message(&shape{bytes: 80}), // functions
		4: message(&shape{bytes: 80}), // links
		5: text(),
		6: message(&shape{bytes: 200, fields: map[protowire.Number]field{2: message(value)}}), // attributes
		7: message(&shape{bytes: 60, fields: map[protowire.Number]field{1: indexes()}}),       // stacks
	}}
	return &shape{fields: map[protowire.Number]field{1: message(resourceProfiles), 2: message(dictionary)}}
}

// pprofShape is a profile of pprof, as its package decodes it
// (github.com/google/pprof/proto/profile.proto) and walkPprof looks it up.
func pprofShape() *shape {
	valueType := message(&shape{bytes: 100})
	label := &shape{bytes: 800} // three maps, if it is the only one of its sample
	sample := &shape{bytes: 180, fields: map[protowire.Number]field{1: varints(), 2: varints(), 3: message(label)}}
	location := &shape{bytes: 400, fields: map[protowire.Number]field{4: message(&shape{bytes: 150})}}
	return &shape{fields: map[protowire.Number]field{
		1:  valueType,
		2:  message(sample),
		3:  message(&shape{bytes: 250}), // mappings
		4:  message(location),
		5:  message(&shape{bytes: 200}), // functions
		6:  text(),
		11: valueType,
		13: {perByte: 48}, // comments, of indexes and then of texts
	}}
}
