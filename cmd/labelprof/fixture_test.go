// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const periodNs = 50_000_000 // 20 Hz

// fixture builds a batch the way a receiver would.
type fixture struct {
	profiles pprofile.Profiles
	dict     pprofile.ProfilesDictionary
	profile  pprofile.Profile
}

func newFixture() *fixture {
	f := &fixture{profiles: pprofile.NewProfiles()}
	f.dict = f.profiles.Dictionary()
	f.text("")
	f.dict.MappingTable().AppendEmpty()
	f.dict.LocationTable().AppendEmpty()
	f.dict.FunctionTable().AppendEmpty()
	f.dict.LinkTable().AppendEmpty()
	f.dict.AttributeTable().AppendEmpty()
	f.dict.StackTable().AppendEmpty()
	return f
}

func (f *fixture) text(s string) int32 {
	f.dict.StringTable().Append(s)
	return int32(f.dict.StringTable().Len() - 1)
}

func (f *fixture) attribute(key string, set func(pcommon.Value)) int32 {
	a := f.dict.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(f.text(key))
	set(a.Value())
	return int32(f.dict.AttributeTable().Len() - 1)
}

// process starts the profile of a process; samples go there.
func (f *fixture) process(pid int64, name string) *fixture {
	rp := f.profiles.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutInt(keyPID, pid)
	rp.Resource().Attributes().PutStr(keyProcessName, name)
	rp.Resource().Attributes().PutStr("service.name", name+"-service")
	f.profile = rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	f.profile.SampleType().SetTypeStrindex(f.text("samples"))
	f.profile.SampleType().SetUnitStrindex(f.text("count"))
	f.profile.PeriodType().SetTypeStrindex(f.text("cpu"))
	f.profile.PeriodType().SetUnitStrindex(f.text("nanoseconds"))
	f.profile.SetPeriod(periodNs)
	f.profile.SetTime(1_000_000_000)
	f.profile.SetDurationNano(5_000_000_000)
	return f
}

// sample adds hits of a stack of functions, leaf first, with labels as pairs of key
// and value.
func (f *fixture) sample(hits int, stack []string, labels ...string) pprofile.Sample {
	s := f.profile.Samples().AppendEmpty()
	table := f.dict.StackTable().AppendEmpty()
	s.SetStackIndex(int32(f.dict.StackTable().Len() - 1))
	for i, name := range stack {
		table.LocationIndices().Append(f.location(uint64(0x1000+i), name))
	}
	for i := 0; i < len(labels); i += 2 {
		s.AttributeIndices().Append(f.attribute(labels[i], func(v pcommon.Value) { v.SetStr(labels[i+1]) }))
	}
	for i := range hits {
		s.TimestampsUnixNano().Append(uint64(1_000_000_000 + i))
	}
	return s
}

func (f *fixture) location(address uint64, name string) int32 {
	m := f.dict.MappingTable().AppendEmpty()
	m.SetFilenameStrindex(f.text("/usr/bin/program"))
	m.SetMemoryLimit(1 << 20)
	m.AttributeIndices().Append(f.attribute(buildIDKeyPrefix+"gnu", func(v pcommon.Value) { v.SetStr("abcd") }))
	l := f.dict.LocationTable().AppendEmpty()
	l.SetAddress(address)
	l.SetMappingIndex(int32(f.dict.MappingTable().Len() - 1))
	if name != "" {
		fn := f.dict.FunctionTable().AppendEmpty()
		fn.SetNameStrindex(f.text(name))
		l.Lines().AppendEmpty().SetFunctionIndex(int32(f.dict.FunctionTable().Len() - 1))
	}
	return int32(f.dict.LocationTable().Len() - 1)
}

func (f *fixture) link(s pprofile.Sample, traceID [16]byte, spanID [8]byte) {
	l := f.dict.LinkTable().AppendEmpty()
	l.SetTraceID(traceID)
	l.SetSpanID(spanID)
	s.SetLinkIndex(int32(f.dict.LinkTable().Len() - 1))
}

// tenants is a batch of two processes that the tests share: 60 hits of acme, 30 of
// globex, 10 without labels.
func tenants(testing.TB) *fixture {
	f := newFixture().process(7, "writer")
	s := f.sample(40, []string{"parse_json", "main"}, labelPrefix+"tenant", "acme", labelPrefix+"route", "/a")
	f.link(s, [16]byte{10, 11, 12, 15: 13}, [8]byte{4, 5})
	f.sample(20, []string{"render", "main"}, "tenant", "acme", "route", "/b")
	f.sample(30, []string{"compress", "main"}, labelPrefix+"tenant", "globex", labelPrefix+"route", "/c")
	f.process(8, "plain")
	f.sample(10, []string{"spin", "main"})
	return f
}
