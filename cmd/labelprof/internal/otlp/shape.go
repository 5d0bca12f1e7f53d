// SPDX-License-Identifier: Apache-2.0

package otlp

import "github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"

// requestShape is an export request of OTLP profiles, as pdata decodes it
// (opentelemetry/proto/profiles/v1development/profiles.proto) and dictionary looks it up. Points
// are counted when it is decoded.
func requestShape() *weight.Shape {
	value := &weight.Shape{Bytes: 48}
	pair := &weight.Shape{Bytes: 200, Fields: weight.Fields{1: weight.Text(), 2: weight.Message(value)}}
	list := weight.Message(&weight.Shape{Bytes: 64, Fields: weight.Fields{1: weight.Message(value)}})
	pairs := weight.Message(&weight.Shape{Bytes: 64, Fields: weight.Fields{1: weight.Message(pair)}})
	value.Fields = weight.Fields{1: weight.Text(), 5: list, 6: pairs, 7: weight.Text()}

	entity := &weight.Shape{Bytes: 160, Fields: weight.Fields{1: weight.Text(), 2: weight.Text(), 3: weight.Text(), 4: weight.Text()}}
	resource := &weight.Shape{Bytes: 160, Fields: weight.Fields{1: weight.Message(pair), 3: weight.Message(entity)}}
	scope := &weight.Shape{Bytes: 100, Fields: weight.Fields{1: weight.Text(), 2: weight.Text(), 3: weight.Message(pair)}}
	sample := &weight.Shape{Bytes: 140, Fields: weight.Fields{2: weight.Indexes(), 4: weight.Varints(), 5: weight.Fixed64s()}}
	profile := &weight.Shape{Bytes: 300, Fields: weight.Fields{
		1: weight.Message(&weight.Shape{}), 2: weight.Message(sample), 5: weight.Message(&weight.Shape{}), 9: weight.Text(), 10: weight.Text(), 11: weight.Indexes(),
	}}
	scopeProfiles := &weight.Shape{Bytes: 200, Fields: weight.Fields{1: weight.Message(scope), 2: weight.Message(profile), 3: weight.Text()}}
	resourceProfiles := &weight.Shape{Bytes: 300, Fields: weight.Fields{1: weight.Message(resource), 2: weight.Message(scopeProfiles), 3: weight.Text()}}

	location := &weight.Shape{Bytes: 500, Fields: weight.Fields{3: weight.Message(&weight.Shape{Bytes: 200}), 4: weight.Indexes()}}
	dictionary := &weight.Shape{Fields: weight.Fields{
		1: weight.Message(&weight.Shape{Bytes: 150, Fields: weight.Fields{5: weight.Indexes()}}), // mappings
		2: weight.Message(location),
		3: weight.Message(&weight.Shape{Bytes: 80}), // functions
		4: weight.Message(&weight.Shape{Bytes: 80}), // links
		5: weight.Text(),
		6: weight.Message(&weight.Shape{Bytes: 200, Fields: weight.Fields{2: weight.Message(value)}}), // attributes
		7: weight.Message(&weight.Shape{Bytes: 60, Fields: weight.Fields{1: weight.Indexes()}}),       // stacks
	}}
	return &weight.Shape{Fields: weight.Fields{1: weight.Message(resourceProfiles), 2: weight.Message(dictionary)}}
}
