// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// PeriodNs is the period of on-CPU profiles: 20 Hz.
const PeriodNs = 50_000_000

// Batch is a batch that is made the way a receiver would.
type Batch struct {
	Profiles pprofile.Profiles
	Dict     pprofile.ProfilesDictionary
	Profile  pprofile.Profile // of the process that was added last
}

// New returns a batch without processes.
func New() *Batch {
	b := &Batch{Profiles: pprofile.NewProfiles()}
	b.Dict = b.Profiles.Dictionary()
	b.Text("")
	b.Dict.MappingTable().AppendEmpty()
	b.Dict.LocationTable().AppendEmpty()
	b.Dict.FunctionTable().AppendEmpty()
	b.Dict.LinkTable().AppendEmpty()
	b.Dict.AttributeTable().AppendEmpty()
	b.Dict.StackTable().AppendEmpty()
	return b
}

// Text adds a text and returns its index.
func (b *Batch) Text(s string) int32 {
	b.Dict.StringTable().Append(s)
	return int32(b.Dict.StringTable().Len() - 1)
}

// Attribute adds an attribute whose value is set by set, and returns its index.
func (b *Batch) Attribute(key string, set func(pcommon.Value)) int32 {
	a := b.Dict.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(b.Text(key))
	set(a.Value())
	return int32(b.Dict.AttributeTable().Len() - 1)
}

// Process starts the profile of a process; samples go there.
func (b *Batch) Process(pid int64, name string) *Batch {
	rp := b.Profiles.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutInt(sample.KeyPID, pid)
	rp.Resource().Attributes().PutStr(sample.KeyProcessName, name)
	rp.Resource().Attributes().PutStr("service.name", name+"-service")
	b.Profile = rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	b.Profile.SampleType().SetTypeStrindex(b.Text("samples"))
	b.Profile.SampleType().SetUnitStrindex(b.Text("count"))
	b.Profile.PeriodType().SetTypeStrindex(b.Text("cpu"))
	b.Profile.PeriodType().SetUnitStrindex(b.Text("nanoseconds"))
	b.Profile.SetPeriod(PeriodNs)
	b.Profile.SetTime(1_000_000_000)
	b.Profile.SetDurationNano(5_000_000_000)
	return b
}

// Sample adds hits of a stack of functions, leaf first, with labels as pairs of key
// and value.
func (b *Batch) Sample(hits int, stack []string, labels ...string) pprofile.Sample {
	s := b.Profile.Samples().AppendEmpty()
	table := b.Dict.StackTable().AppendEmpty()
	s.SetStackIndex(int32(b.Dict.StackTable().Len() - 1))
	for i, name := range stack {
		table.LocationIndices().Append(b.location(uint64(0x1000+i), name))
	}
	for i := 0; i < len(labels); i += 2 {
		s.AttributeIndices().Append(b.Attribute(labels[i], func(v pcommon.Value) { v.SetStr(labels[i+1]) }))
	}
	for i := range hits {
		s.TimestampsUnixNano().Append(uint64(1_000_000_000 + i))
	}
	return s
}

func (b *Batch) location(address uint64, name string) int32 {
	m := b.Dict.MappingTable().AppendEmpty()
	m.SetFilenameStrindex(b.Text("/usr/bin/program"))
	m.SetMemoryLimit(1 << 20)
	m.AttributeIndices().Append(b.Attribute("process.executable.build_id.gnu", func(v pcommon.Value) { v.SetStr("abcd") }))
	l := b.Dict.LocationTable().AppendEmpty()
	l.SetAddress(address)
	l.SetMappingIndex(int32(b.Dict.MappingTable().Len() - 1))
	if name != "" {
		fn := b.Dict.FunctionTable().AppendEmpty()
		fn.SetNameStrindex(b.Text(name))
		l.Lines().AppendEmpty().SetFunctionIndex(int32(b.Dict.FunctionTable().Len() - 1))
	}
	return int32(b.Dict.LocationTable().Len() - 1)
}

// Distinct is a batch of samples that differ by the number of a request, which is from first on.
func Distinct(first, samples int) *Batch {
	b := New().Process(7, "writer")
	for i := range samples {
		b.Sample(1, []string{"f", "main"}, "request", strconv.Itoa(first+i))
	}
	return b
}

// Link links a sample to a span.
func (b *Batch) Link(s pprofile.Sample, traceID [16]byte, spanID [8]byte) {
	l := b.Dict.LinkTable().AppendEmpty()
	l.SetTraceID(traceID)
	l.SetSpanID(spanID)
	s.SetLinkIndex(int32(b.Dict.LinkTable().Len() - 1))
}

// Tenants is a batch of two processes that the tests share: 60 hits of acme, 30 of
// globex, 10 without labels.
func Tenants() *Batch {
	b := New().Process(7, "writer")
	s := b.Sample(40, []string{"parse_json", "main"}, sample.LabelPrefix+"tenant", "acme", sample.LabelPrefix+"route", "/a")
	b.Link(s, [16]byte{10, 11, 12, 15: 13}, [8]byte{4, 5})
	b.Sample(20, []string{"render", "main"}, "tenant", "acme", "route", "/b")
	b.Sample(30, []string{"compress", "main"}, sample.LabelPrefix+"tenant", "globex", sample.LabelPrefix+"route", "/c")
	b.Process(8, "plain")
	b.Sample(10, []string{"spin", "main"})
	return b
}
