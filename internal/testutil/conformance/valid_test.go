package conformance

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Strings of the valid profiles, by index.
var testStrings = []string{
	"", "samples", "count", "cpu", "nanoseconds", "main", "main.c", "profile.frame.type",
	"off_cpu", "tenant", "trace_id", "span_id", "by",
}

const (
	traceHex = "01000000000000000000000000000000"
	spanHex  = "0200000000000000"
)

// valid has two resources, an on-CPU and an off-CPU profile in the first, every
// table in use, and two samples that differ in one attribute only.
func valid() pprofile.Profiles {
	p := pprofile.NewProfiles()
	d := p.Dictionary()
	d.StringTable().FromRaw(testStrings)
	d.AttributeTable().AppendEmpty()
	for _, kv := range [][2]any{{9, "acme"}, {9, "umbrella"}, {10, traceHex}, {11, spanHex}, {7, "x"}} {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(int32(kv[0].(int)))
		a.Value().SetStr(kv[1].(string))
	}
	d.AttributeTable().At(1).SetUnitStrindex(12)
	d.FunctionTable().AppendEmpty()
	f := d.FunctionTable().AppendEmpty()
	f.SetNameStrindex(5)
	f.SetSystemNameStrindex(5)
	f.SetFilenameStrindex(6)
	d.MappingTable().AppendEmpty()
	m := d.MappingTable().AppendEmpty()
	m.SetMemoryStart(0x1000)
	m.SetMemoryLimit(0x2000)
	m.SetFilenameStrindex(7)
	m.AttributeIndices().Append(5)
	d.LocationTable().AppendEmpty()
	for _, addr := range []uint64{0x1000, 0x1fff} {
		l := d.LocationTable().AppendEmpty()
		l.SetAddress(addr)
		l.SetMappingIndex(1)
		l.Lines().AppendEmpty().SetFunctionIndex(1)
		l.AttributeIndices().Append(5)
	}
	d.StackTable().AppendEmpty()
	d.StackTable().AppendEmpty().LocationIndices().Append(1, 2)
	d.StackTable().AppendEmpty().LocationIndices().Append(2, 1)
	d.LinkTable().AppendEmpty()
	l := d.LinkTable().AppendEmpty()
	l.SetTraceID(pcommon.TraceID{1})
	l.SetSpanID(pcommon.SpanID{2})

	for range 2 {
		rp := p.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("service.name", "svc")
		sp := rp.ScopeProfiles().AppendEmpty()
		sp.Scope().SetName("scope")
		addProfile(sp, 1, 2).SetProfileID(pprofile.ProfileID{byte(p.ResourceProfiles().Len())})
	}
	setPeriod(onCPU(p), 1000, 3, 4)
	setPeriod(p.ResourceProfiles().At(1).ScopeProfiles().At(0).Profiles().At(0), 1000, 3, 4)
	for _, s := range addProfile(p.ResourceProfiles().At(0).ScopeProfiles().At(0), 8, 4).Samples().All() {
		s.Values().Append(5, 6)
	}
	return p
}

func addProfile(sp pprofile.ScopeProfiles, kind, unit int32) pprofile.Profile {
	p := sp.Profiles().AppendEmpty()
	p.SetTime(1_000)
	p.SetDurationNano(100)
	p.SampleType().SetTypeStrindex(kind)
	p.SampleType().SetUnitStrindex(unit)
	for i := range int32(2) {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(1)
		s.SetLinkIndex(1)
		s.AttributeIndices().Append(1+i, 3, 4)
		s.TimestampsUnixNano().Append(1_000, 1_099)
	}
	// A third one that differs in its stack, without a link.
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(2)
	s.TimestampsUnixNano().Append(1_050, 1_049)
	return p
}

func setPeriod(p pprofile.Profile, period int64, kind, unit int32) {
	p.SetPeriod(period)
	p.PeriodType().SetTypeStrindex(kind)
	p.PeriodType().SetUnitStrindex(unit)
}

func onCPU(p pprofile.Profiles) pprofile.Profile {
	return p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
}

func offCPU(p pprofile.Profiles) pprofile.Profile {
	return p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(1)
}

// addFunction adds a function that the second location refers to, too.
func addFunction(d pprofile.ProfilesDictionary) pprofile.Function {
	f := d.FunctionTable().AppendEmpty()
	f.SetNameStrindex(6)
	d.LocationTable().At(2).Lines().AppendEmpty().SetFunctionIndex(2)
	return f
}

// addMapping adds a mapping that the second location lies in instead.
func addMapping(d pprofile.ProfilesDictionary) pprofile.Mapping {
	m := d.MappingTable().AppendEmpty()
	d.MappingTable().At(1).CopyTo(m)
	m.SetFileOffset(1)
	d.LocationTable().At(2).SetMappingIndex(2)
	return m
}
