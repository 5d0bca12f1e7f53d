// SPDX-License-Identifier: Apache-2.0

package pprof

import "github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"

// shape is a profile of pprof, as its package decodes it
// (github.com/google/pprof/proto/profile.proto) and Walk looks it up.
func shape() *weight.Shape {
	valueType := weight.Message(&weight.Shape{Bytes: 100})
	label := &weight.Shape{Bytes: 800} // three maps, if it is the only one of its sample
	sample := &weight.Shape{Bytes: 180, Fields: weight.Fields{1: weight.Varints(), 2: weight.Varints(), 3: weight.Message(label)}}
	location := &weight.Shape{Bytes: 400, Fields: weight.Fields{4: weight.Message(&weight.Shape{Bytes: 150})}}
	return &weight.Shape{Fields: weight.Fields{
		1:  valueType,
		2:  weight.Message(sample),
		3:  weight.Message(&weight.Shape{Bytes: 250}), // mappings
		4:  weight.Message(location),
		5:  weight.Message(&weight.Shape{Bytes: 200}), // functions
		6:  weight.Text(),
		11: valueType,
		13: {PerByte: 48}, // comments, of indexes and then of texts
	}}
}
