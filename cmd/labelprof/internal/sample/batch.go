// SPDX-License-Identifier: Apache-2.0

package sample

import "github.com/customlabels/otelcol-customlabels/internal/samplestore"

// Bounds of what a batch may refer to: a few bytes can name the same thing again and again.
// Samples beyond count as malformed.
const (
	MaxFrames     = 4096    // of a sample
	MaxLines      = 256     // of a location: functions inlined there
	MaxAttributes = 512     // of a sample or resource
	MaxWork       = 1 << 26 // frames, lines, attributes and values of all samples
)

// MaxNs bounds what a single sample may claim, two weeks of time, so that
// no sum that matters can overflow. More CPU time is malformed in OTLP; time off the CPU, which
// may be weighted, and sums of pprof are cut to it.
const MaxNs = 1 << 50

// Batch is what a reader found besides the samples that it handed over.
type Batch struct {
	Malformed     int64 // samples with an index out of range or an impossible value
	Cut           int64 // times of one sample that were cut to MaxNs
	OtherProfiles int64 // profiles of something else than CPU and off-CPU time
	StartNs       uint64
	EndNs         uint64
}

// Walk hands over every on-CPU and off-CPU sample of a batch, one at a time.
type Walk func(visit func(*Sample)) Batch

// AddNs adds up times and stays at the largest one.
func AddNs(a, b int64) int64 { return samplestore.AddNs(a, b) }
