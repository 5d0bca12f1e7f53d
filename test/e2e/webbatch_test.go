//go:build linux && (amd64 || arm64)

package e2e

import (
	"hash/fnv"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// A webBatch is profiles in the making.
type webBatch struct {
	profiles pprofile.Profiles
	dict     pprofile.ProfilesDictionary
	texts    map[string]int32
}

func newWebBatch() webBatch {
	b := webBatch{profiles: pprofile.NewProfiles(), texts: map[string]int32{}}
	b.dict = b.profiles.Dictionary()
	b.text("")
	b.dict.MappingTable().AppendEmpty()
	b.dict.LocationTable().AppendEmpty()
	b.dict.FunctionTable().AppendEmpty()
	b.dict.LinkTable().AppendEmpty()
	b.dict.AttributeTable().AppendEmpty()
	b.dict.StackTable().AppendEmpty()
	return b
}

// process adds a process with an empty profile.
func (b *webBatch) process(pid int64, name string, at time.Time) pprofile.Profile {
	rp := b.profiles.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutInt("process.pid", pid)
	rp.Resource().Attributes().PutStr("process.executable.name", name)
	p := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(b.text("samples"))
	p.SampleType().SetUnitStrindex(b.text("count"))
	p.PeriodType().SetTypeStrindex(b.text("cpu"))
	p.PeriodType().SetUnitStrindex(b.text("nanoseconds"))
	p.SetPeriod(int64(time.Second) / 97)
	p.SetTime(pcommon.NewTimestampFromTime(at))
	return p
}

func (b *webBatch) text(s string) int32 {
	i, ok := b.texts[s]
	if !ok {
		i = int32(b.dict.StringTable().Len())
		b.dict.StringTable().Append(s)
		b.texts[s] = i
	}
	return i
}

func (b *webBatch) attribute(key, value string) int32 {
	name := key + "\x00" + value
	i, ok := b.texts[name]
	if !ok {
		i = int32(b.dict.AttributeTable().Len())
		a := b.dict.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(b.text(key))
		a.Value().SetStr(value)
		b.texts[name] = i
	}
	return i
}

// frame adds a location with one function.
func (b *webBatch) frame(name, module, kind string) int32 {
	m := b.dict.MappingTable().AppendEmpty()
	m.SetFilenameStrindex(b.text(module))
	f := b.dict.FunctionTable().AppendEmpty()
	f.SetNameStrindex(b.text(name))
	i := int32(b.dict.LocationTable().Len())
	entry := b.dict.LocationTable().AppendEmpty()
	// A function is where it was in other batches.
	h := fnv.New32a()
	h.Write([]byte(name))
	entry.SetAddress(uint64(h.Sum32()))
	entry.SetMappingIndex(int32(b.dict.MappingTable().Len() - 1))
	entry.Lines().AppendEmpty().SetFunctionIndex(int32(b.dict.FunctionTable().Len() - 1))
	entry.AttributeIndices().Append(b.attribute("profile.frame.type", kind))
	return i
}

// webOffCPUFile is a file with an absence from the CPU and nothing else.
func webOffCPUFile(t *testing.T, dir string) string {
	t.Helper()
	b := newWebBatch()
	p := b.process(7, "waiter", time.Now())
	p.SampleType().SetTypeStrindex(b.text("off_cpu"))
	p.SampleType().SetUnitStrindex(b.text("nanoseconds"))
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(1)
	s.Values().Append(int64(time.Second))
	b.dict.StackTable().AppendEmpty().LocationIndices().Append(b.frame("wait", "/usr/bin/waiter", "native"))
	data, err := pprofileotlp.NewExportRequestFromProfiles(b.profiles).MarshalProto()
	require.NoError(t, err)
	name := filepath.Join(dir, "off.otlp")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name
}
