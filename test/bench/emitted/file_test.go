package emitted

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// batchOf is a batch with one entry that stands for two hits: in the kernel, called by a
// function of a program that has a name.
func batchOf(t *testing.T, pid int64) []byte {
	t.Helper()
	p := pprofile.NewProfiles()
	dict := p.Dictionary()
	dict.StringTable().FromRaw([]string{"", "thread.name", "busy", "profile.frame.type", "kernel", "/bin/busy", "main", "inlined"})
	attribute := func(key int32, value string) int32 {
		entry := dict.AttributeTable().AppendEmpty()
		entry.SetKeyStrindex(key)
		entry.Value().SetStr(value)
		return int32(dict.AttributeTable().Len() - 1)
	}
	attribute(0, "")
	name, kernel := attribute(1, "busy"), attribute(3, "kernel")
	dict.MappingTable().AppendEmpty()
	mapping := dict.MappingTable().AppendEmpty()
	mapping.SetMemoryStart(0x7000)
	mapping.SetFileOffset(0x2000)
	mapping.SetFilenameStrindex(5)
	dict.FunctionTable().AppendEmpty()
	dict.FunctionTable().AppendEmpty().SetNameStrindex(6)
	dict.FunctionTable().AppendEmpty().SetNameStrindex(7)
	dict.LocationTable().AppendEmpty()
	inKernel := dict.LocationTable().AppendEmpty()
	inKernel.SetAddress(0xffff_0000)
	inKernel.AttributeIndices().Append(kernel)
	inProgram := dict.LocationTable().AppendEmpty()
	inProgram.SetAddress(0x7123)
	inProgram.SetMappingIndex(1)
	inProgram.Lines().AppendEmpty().SetFunctionIndex(2)
	inProgram.Lines().AppendEmpty().SetFunctionIndex(1)
	dict.StackTable().AppendEmpty()
	dict.StackTable().AppendEmpty().LocationIndices().Append(1, 2)

	rp := p.ResourceProfiles().AppendEmpty()
	rp.Resource().Attributes().PutInt("process.pid", pid)
	sample := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	sample.SetStackIndex(1)
	sample.AttributeIndices().Append(name)
	sample.TimestampsUnixNano().Append(100, 200)
	text, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	require.NoError(t, err)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func TestReadFile(t *testing.T) {
	first, second := batchOf(t, 7), batchOf(t, 8)
	path := filepath.Join(t.TempDir(), "profiles")
	written := append(first, second[:len(second)-1]...)
	require.NoError(t, os.WriteFile(path, written, 0o600))
	samples, next, err := ReadFile(path, 0)
	require.NoError(t, err)
	require.EqualValues(t, len(first), next, "the second batch is not there yet")
	require.Len(t, samples, 2)
	stack := Stack{
		{Kernel: true, Address: 0xffff_0000},
		{File: "/bin/busy", Address: 0x7123, Start: 0x7000, Offset: 0x2000, Function: "main", Inlined: []string{"inlined"}},
	}
	for i, at := range []uint64{100, 200} {
		require.Equal(t, Sample{PID: 7, TimeUnixNano: at, Stack: stack, Attributes: map[string]string{"thread.name": "busy"}}, samples[i])
	}
	require.Equal(t, stack[1:], stack.User())
	require.EqualValues(t, 0x2123, stack[1].FileOffset())

	require.NoError(t, os.WriteFile(path, append(first, second...), 0o600))
	samples, next, err = ReadFile(path, next)
	require.NoError(t, err)
	require.EqualValues(t, len(first)+len(second), next)
	require.Len(t, samples, 2)
	require.EqualValues(t, 8, samples[0].PID)
	samples, _, err = ReadFile(path, next)
	require.NoError(t, err)
	require.Empty(t, samples)
}

func TestReadFileOfOtherBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profiles")
	require.NoError(t, os.WriteFile(path, []byte{3, 0, 0, 0, 0xff, 0xff, 0xff}, 0o600))
	_, _, err := ReadFile(path, 0)
	require.ErrorContains(t, err, path)
	_, _, err = ReadFile(path+"-missing", 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}
