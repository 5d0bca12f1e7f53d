package v8js

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// exported is what the executable of a Node.js exports.
func exported(v version) map[string]int32 {
	r, _ := releaseOf(v)
	ints := map[string]int32{majorSymbol: v.major, minorSymbol: v.minor}
	for name, value := range r.expected() {
		ints["v8dbg_"+name] = value
	}
	for i, name := range []string{
		"SharedFunctionInfo__SHARED_FUNCTION_INFO", "Script__SCRIPT", "ScopeInfo__SCOPE_INFO", "BytecodeArray__BYTECODE_ARRAY",
		"InterpreterData__INTERPRETER_DATA", "Code__CODE", "FixedArray__FIXED_ARRAY", "ByteArray__BYTE_ARRAY",
		"WeakFixedArray__WEAK_FIXED_ARRAY", "JSFunction__JS_FUNCTION", "InstructionStream__INSTRUCTION_STREAM",
	} {
		ints["v8dbg_type_"+name+"_TYPE"] = int32(200 + i)
	}
	if r.trusted {
		ints["v8dbg_type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE"] = 300
		ints["v8dbg_type_TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE"] = 301
	}
	if r.wrapped {
		ints["v8dbg_type_TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY_TYPE"] = 302
		ints["v8dbg_type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE"] = 303
		ints["v8dbg_type_ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE"] = 304
		delete(ints, "v8dbg_type_TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE")
	}
	return ints
}

// image is a small library that exports ints.
func image(t testing.TB, ints map[string]int32) []byte {
	t.Helper()
	var source strings.Builder
	for _, name := range slices.Sorted(maps.Keys(ints)) {
		fmt.Fprintf(&source, "int %s = %d;\n", name, ints[name])
	}
	path := filepath.Join(t.TempDir(), "v8.so")
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-nostdlib", "-s", "-o", path, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source.String())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return of(elf.EM_X86_64, data)
}

// of makes a file one of another machine.
func of(machine elf.Machine, file []byte) []byte {
	binary.LittleEndian.PutUint16(file[18:], uint16(machine))
	return file
}

func layoutIn(t testing.TB, data []byte) (*Layout, error) {
	t.Helper()
	e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return LayoutOf(e)
}

func TestLayoutOf(t *testing.T) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			l, err := layoutIn(t, image(t, exported(v)))
			require.NoError(t, err)
			require.Equal(t, record.RuntimeV8, l.Kind())
			require.Equal(t, v, l.version)
			p, err := l.Open(nil, 0x1000)
			require.NoError(t, err)
			said := p.Record()
			require.Equal(t, record.RuntimeV8, said.Kind)
			require.EqualValues(t, 200, said.V8.SharedType)
			require.EqualValues(t, 209, said.V8.FunctionFirst)
			require.Greater(t, said.V8.FunctionLast, said.V8.FunctionFirst)
			list := map[bool]uint16{false: 206, true: 301}[l.release.trusted]
			if l.release.wrapped {
				list = 304
			}
			require.Equal(t, list, said.V8.ListType)
			// What BPF reads of objects at once, without a look at how long they are.
			require.LessOrEqual(t, int(l.release.id)+4, sharedBytes)
			require.LessOrEqual(t, int(l.release.size)+4, codeHeaderBytes)
		})
	}
}

// On aarch64 a version is refused whose stacks were not compared there.
func TestLayoutOfAArch64(t *testing.T) {
	refused := map[string]bool{"11.8": true, "14.1": true}
	for _, v := range versions {
		data := image(t, exported(v))
		here, err := layoutIn(t, data)
		require.NoError(t, err)
		l, err := layoutIn(t, of(elf.EM_AARCH64, data))
		if refused[v.String()] {
			require.ErrorIs(t, err, langruntime.ErrUnsupported)
			require.ErrorContains(t, err, "V8 "+v.String()+" on EM_AARCH64")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, here.process, l.process)
	}
}

// What contradicts the table, or leaves a question open, is refused, and named.
func TestLayoutOfRefuses(t *testing.T) {
	_, err := layoutIn(t, image(t, map[string]int32{"x": 1, "v8dbg_TaggedSize": 8}))
	require.ErrorIs(t, err, langruntime.ErrNone)
	ints := exported(version{13, 6})
	for name := range ints {
		if name == majorSymbol || name == minorSymbol {
			continue
		}
		without := maps.Clone(ints)
		delete(without, name)
		_, err := layoutIn(t, image(t, without))
		require.ErrorIs(t, err, langruntime.ErrUnsupported, name)
		if strings.HasPrefix(name, "v8dbg_type_") {
			continue
		}
		other := maps.Clone(ints)
		other[name]++
		_, err = layoutIn(t, image(t, other))
		require.ErrorIs(t, err, langruntime.ErrUnsupported, name)
		require.ErrorContains(t, err, name)
	}
	ints[minorSymbol] = 7
	_, err = layoutIn(t, image(t, ints))
	require.ErrorIs(t, err, langruntime.ErrUnsupported)
	require.ErrorContains(t, err, "V8 13.7")
}

// FuzzFile gives LayoutOf a hostile file.
func FuzzFile(f *testing.F) {
	for _, v := range versions {
		f.Add(image(f, exported(v)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		l, err := LayoutOf(e)
		if (l == nil) == (err == nil) {
			t.Fatalf("%+v beside %v", l, err)
		}
		if err == nil && (l.process.SharedType == 0 || errors.Is(err, langruntime.ErrNone)) {
			t.Fatalf("%+v", l)
		}
	})
}
