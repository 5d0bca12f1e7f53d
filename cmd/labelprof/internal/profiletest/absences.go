// SPDX-License-Identifier: Apache-2.0

package profiletest

import "github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"

// Absence adds an absence of a thread that left the CPU in a function of the program.
func (b *Batch) Absence(ns int64, function string, labels ...string) {
	s := b.Sample(1, []string{"__schedule", function, "main"}, labels...)
	s.Values().Append(ns)
	kernel := b.Dict.StackTable().At(int(s.StackIndex())).LocationIndices().At(0)
	m := b.Dict.LocationTable().At(int(kernel)).MappingIndex()
	b.Dict.MappingTable().At(int(m)).SetFilenameStrindex(b.Text("[kernel.kallsyms]"))
}

// Absences is a batch as the receiver's for off-CPU profiles: 3 s of acme, 1 s of a
// tenant that uses no CPU.
func Absences() *Batch {
	b := New().Process(7, "writer")
	b.Profile.SampleType().SetTypeStrindex(b.Text("off_cpu"))
	b.Profile.SampleType().SetUnitStrindex(b.Text("nanoseconds"))
	b.Profile.PeriodType().SetTypeStrindex(0)
	b.Profile.PeriodType().SetUnitStrindex(0)
	b.Profile.SetPeriod(0)
	b.Absence(1e9, "read_pipe", sample.LabelPrefix+"tenant", "acme", "custom_labels.thread_state", "sleeping")
	b.Absence(2e9, "lock", sample.LabelPrefix+"tenant", "acme", "custom_labels.thread_state", "sleeping")
	b.Absence(1e9, "lock", sample.LabelPrefix+"tenant", "idler", "custom_labels.thread_state", "runnable")
	return b
}
