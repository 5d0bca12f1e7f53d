package bpf

import "github.com/customlabels/otelcol-customlabels/internal/record"

// maxSampleBytes is the length of the longest sample.
const maxSampleBytes = record.SampleHeaderBytes + record.MaxLabelBytes + 8*(record.MaxKernelFrames+record.MaxUserFrames)
