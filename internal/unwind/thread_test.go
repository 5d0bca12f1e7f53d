package unwind_test

import (
	"bytes"
	"debug/elf"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// Threads of musl on aarch64 begin within clone, wherever it lies.
func TestThreadsOfMusl(t *testing.T) {
	const clone = "\x01\x00\x00\xd4" + // svc #0
		"\x40\x00\x00\xb4\xc0\x03\x5f\xd6" + // cbz x0, thread; ret
		"\xe1\x03\xc1\xa8\x20\x00\x3f\xd6" + // thread: ldp x1, x0, [sp], #16; blr x1
		"\xa8\x0b\x80\xd2\x01\x00\x00\xd4" // mov x8, #93; svc #0
	const signal = "\x68\x11\x80\xd2\x01\x00\x00\xd4"
	const thread = 12 // bytes into clone
	for name, at := range map[string]uint64{"early": 64, "over two reads": 16384 - 16, "behind a read": 16384 - 28, "at the end": 65536 - 28} {
		t.Run(name, func(t *testing.T) {
			m := newImage(65536)
			m.machine = elf.EM_AARCH64
			copy(m.text[at:], clone)
			copy(m.text[32:], signal)
			copy(m.text[20000:], signal)
			made, err := m.compile()
			require.NoError(t, err)
			consistent(t, made)
			require.Equal(t, 1, made.Stats.Clones)
			require.Equal(t, 2, made.Stats.Trampolines)
			for i := uint64(0); i < uint64(len(clone)); i += 4 {
				got, ok := made.Lookup(imageText + at + i)
				require.Equal(t, i >= thread, ok && got.CFA == record.CFAEnd, i)
			}
		})
	}
	t.Run("another machine", func(t *testing.T) {
		m := newImage(65536)
		copy(m.text[64:], clone)
		_, err := m.compile()
		require.ErrorIs(t, err, unwind.ErrNone)
	})
}

// What glibc's makecontext has begun returns to a function that nothing has called.
func TestContextsOfGlibc(t *testing.T) {
	const code = "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff\x74"
	const path = "/lib/x86_64-linux-gnu/libc.so.6"
	if runtime.GOARCH != "amd64" {
		return
	}
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	section := f.Section(".text")
	text, err := section.Data()
	require.NoError(t, err)
	at := bytes.Index(text, []byte(code))
	require.Positive(t, at)
	start := section.Addr + uint64(at)
	rows := table(t, path)
	r, ok := rows.Lookup(start - 1)
	require.True(t, ok)
	require.Equal(t, record.UnwindRule{CFA: record.CFAEnd}, r)
	r, ok = rows.Lookup(start)
	require.True(t, ok)
	require.Equal(t, record.CFASP, r.CFA, "as it is described")
}

// Go's clone is that of its caller up to its return, then that of the thread.
func TestThreadsOfGo(t *testing.T) {
	for arch, entry := range map[string]record.UnwindRule{
		"amd64": {CFA: record.CFASP, CFAOffset: 8, RAOffset: -8},
		"arm64": {CFA: record.CFASP, RA: record.RARegister},
	} {
		t.Run(arch, func(t *testing.T) {
			path := buildGo(t, arch)
			rows := table(t, path)
			f, err := elf.Open(path)
			require.NoError(t, err)
			defer f.Close()
			symbols, err := f.Symbols()
			require.NoError(t, err)
			checked := false
			for _, s := range symbols {
				if s.Name != "runtime.clone.abi0" {
					continue
				}
				checked = true
				code := make([]byte, s.Size)
				_, err := f.Sections[s.Section].ReadAt(code, int64(s.Value-f.Sections[s.Section].Addr))
				require.NoError(t, err)
				ret := threadOfGo(t, f.Machine, code)
				for i := range code {
					got, ok := rows.Lookup(s.Value + uint64(i))
					require.True(t, ok)
					if i < ret {
						require.Equal(t, entry, got, i)
					} else {
						require.Equal(t, record.UnwindRule{CFA: record.CFAEnd}, got, i)
					}
				}
			}
			require.True(t, checked)
		})
	}
}

// threadOfGo is where the branch behind the first system call leads.
func threadOfGo(t *testing.T, machine elf.Machine, code []byte) int {
	t.Helper()
	for i := range code {
		switch {
		case machine == elf.EM_X86_64 && code[i] == 0x0f && code[i+1] == 0x05: // syscall; cmp $0, %rax; je
			require.Equal(t, []byte("\x48\x83\xf8\x00\x74"), code[i+2:i+7])
			return i + 8 + int(code[i+7])
		case machine == elf.EM_AARCH64 && i%4 == 0 && string(code[i:i+4]) == "\x01\x00\x00\xd4": // svc #0; cmp; b.eq
			require.Equal(t, byte(0x54), code[i+11])
			return i + 8 + 4*int(code[i+8]>>5)
		}
	}
	t.Fatal("no system call")
	return 0
}
