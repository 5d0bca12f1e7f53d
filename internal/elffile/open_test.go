package elffile_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// open opens a file from memory, changed first.
func open(tb testing.TB, path string, change ...func([]byte)) *elffile.File {
	tb.Helper()
	b, err := os.ReadFile(path)
	require.NoError(tb, err)
	for _, c := range change {
		c(b)
	}
	f, err := elffile.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(tb, err)
	return f
}

// noSections makes the section headers disappear.
func noSections(b []byte) {
	clear(b[40:48]) // e_shoff
	clear(b[58:64]) // e_shentsize, e_shnum, e_shstrndx
}

func put16(off int, v uint16) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint16(b[off:], v) }
}

func put64(off int, v uint64) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint64(b[off:], v) }
}

func TestNewRefuses(t *testing.T) {
	good, err := os.ReadFile(corpus.Library(t, corpus.GCC))
	require.NoError(t, err)
	tests := []struct {
		name   string
		change func([]byte)
		err    error // nil: *FormatError
	}{
		{"magic", func(b []byte) { b[1] = 'e' }, elffile.ErrNotELF},
		{"32-bit", func(b []byte) { b[elf.EI_CLASS] = byte(elf.ELFCLASS32) }, elffile.ErrUnsupported},
		{"big-endian", func(b []byte) { b[elf.EI_DATA] = byte(elf.ELFDATA2MSB) }, elffile.ErrUnsupported},
		{"object file", put16(16, uint16(elf.ET_REL)), elffile.ErrUnsupported},
		{"core file", put16(16, uint16(elf.ET_CORE)), elffile.ErrUnsupported},
		{"i386", put16(18, uint16(elf.EM_386)), elffile.ErrUnsupported},
		{"program header size", put16(54, 32), nil},
		{"no program headers", put16(56, 0), nil},
		{"many program headers", put16(56, 0xffff), nil},
		{"program headers behind the end", put64(32, uint64(len(good))-56), nil},
		{"program headers far away", put64(32, 1<<63), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := bytes.Clone(good)
			test.change(b)
			_, err := elffile.New(bytes.NewReader(b), int64(len(b)))
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
				return
			}
			var format *elffile.FormatError
			require.ErrorAs(t, err, &format)
			require.NotEmpty(t, format.Msg)
		})
	}
	for _, n := range []int{-1, 0, 4, 63} {
		_, err := elffile.New(bytes.NewReader(good), int64(n))
		require.ErrorIs(t, err, elffile.ErrNotELF)
	}
	// Two TLS segments.
	b := bytes.Clone(good)
	binary.LittleEndian.PutUint32(b[64:], uint32(elf.PT_TLS))
	_, err = elffile.New(bytes.NewReader(b), int64(len(b)))
	require.ErrorContains(t, err, "PT_TLS")
}

// A file that is cut while it is open, and a reader with errors of its own.
func TestReadErrors(t *testing.T) {
	good, err := os.ReadFile(corpus.Library(t, corpus.GCC))
	require.NoError(t, err)
	_, err = elffile.New(bytes.NewReader(good[:32]), int64(len(good)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	f, err := elffile.New(bytes.NewReader(good[:0x300]), int64(len(good)))
	require.NoError(t, err)
	_, _, err = f.DynamicSymbol("variable_address")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = elffile.New(broken{}, 4096)
	require.ErrorIs(t, err, errBroken)
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

func TestIsExecutable(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC, corpus.MuslGCC} {
		require.False(t, open(t, corpus.Library(t, compiler)).IsExecutable())
		for _, link := range []string{"-pie", "-no-pie", "-static", "-static-pie"} {
			f := open(t, corpus.Build(t, "host", compiler, "host.c", "variable.c", "-DLINKED", link))
			require.True(t, f.IsExecutable(), "%s %s", compiler, link)
			if compiler != corpus.MuslGCC { // its -static-pie asks for the loader
				require.Equal(t, link == "-static" || link == "-static-pie", f.Interp() == "", "%s %s", compiler, link)
			}
		}
	}
	// A library that can be run, as libc.so.6, is a library.
	f := open(t, corpus.Library(t, corpus.GCC, "-Wl,--dynamic-linker=/lib/ld.so"))
	require.False(t, f.IsExecutable())
	// Linkers of 2015 did not write DF_1_PIE, and DT_DEBUG may be missing.
	program := corpus.Build(t, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-pie")
	require.True(t, open(t, program, noTag(elf.DT_FLAGS_1)).IsExecutable())
	require.True(t, open(t, program, noTag(elf.DT_DEBUG)).IsExecutable())
	require.False(t, open(t, program, noTag(elf.DT_DEBUG), noTag(elf.DT_FLAGS_1)).IsExecutable())
}

// noTag makes an entry of the dynamic section one that nobody knows.
func noTag(tag elf.DynTag) func([]byte) {
	return func(b []byte) {
		for off := 64; ; off += 56 {
			if elf.ProgType(binary.LittleEndian.Uint32(b[off:])) == elf.PT_DYNAMIC {
				for at := binary.LittleEndian.Uint64(b[off+8:]); ; at += 16 {
					if elf.DynTag(binary.LittleEndian.Uint64(b[at:])) == tag {
						put64(int(at), 0x6000dead)(b)
						return
					}
				}
			}
		}
	}
}

func TestInterp(t *testing.T) {
	tests := map[string]string{
		corpus.GCC:        "/lib64/ld-linux-x86-64.so.2",
		corpus.AArch64GCC: "/lib/ld-linux-aarch64.so.1",
		corpus.MuslGCC:    "/lib/ld-musl-x86_64.so.1",
	}
	for compiler, want := range tests {
		f := open(t, corpus.Build(t, "host", compiler, "host.c", "variable.c", "-DLINKED", "-no-pie"))
		require.Equal(t, want, f.Interp())
	}
}

func TestTLS(t *testing.T) {
	f := open(t, corpus.Library(t, corpus.GCC, "-DALIGN=64", "-DPAD=100"))
	tls, ok := f.TLS()
	require.True(t, ok)
	require.EqualValues(t, 64, tls.Align)
	require.EqualValues(t, 128+8, tls.Filesz)
	require.EqualValues(t, 128+8+8+24, tls.Memsz)
	_, ok = open(t, corpus.Build(t, "lib.so", corpus.GCC, "user.c", "-shared", "-fPIC")).TLS()
	require.False(t, ok)
}

// Segments with page-sharing neighbours, as lld and aarch64 linkers lay out.
func TestLoadBias(t *testing.T) {
	load := func(flags elf.ProgFlag, offset, vaddr, size uint64) []byte {
		var b []byte
		b = binary.LittleEndian.AppendUint32(b, uint32(elf.PT_LOAD))
		b = binary.LittleEndian.AppendUint32(b, uint32(flags))
		for _, v := range []uint64{offset, vaddr, vaddr, size, size, 0x1000} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	file := func(machine elf.Machine, segments ...[]byte) *elffile.File {
		header := make([]byte, 64)
		copy(header, elf.ELFMAG)
		header[elf.EI_CLASS], header[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
		put16(16, uint16(elf.ET_DYN))(header)
		put16(18, uint16(machine))(header)
		put64(32, 64)(header)
		put16(54, 56)(header)
		put16(56, uint16(len(segments)))(header)
		b := bytes.Join(append([][]byte{header}, segments...), nil)
		f, err := elffile.New(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		return f
	}
	lld := file(elf.EM_X86_64,
		load(elf.PF_R, 0, 0, 0x910),
		load(elf.PF_R|elf.PF_X, 0x910, 0x1910, 0x2345),
		load(elf.PF_R|elf.PF_W, 0x2c58, 0x4c58, 0x100),
		load(elf.PF_R|elf.PF_W, 0x2d58, 0x5d58, 0x100))
	exec := file(elf.EM_X86_64,
		load(elf.PF_R, 0, 0x400000, 0x500),
		load(elf.PF_R|elf.PF_X, 0x1000, 0x401000, 0x500))
	arm := file(elf.EM_AARCH64, load(elf.PF_R|elf.PF_X, 0x10910, 0x20910, 0x2345))
	const bias = 0x7f12_3456_0000
	tests := []struct {
		name          string
		file          *elffile.File
		start, offset uint64
		executable    bool
		ok            bool
		want          uint64
	}{
		{"headers", lld, bias, 0, false, true, bias},
		{"text", lld, bias + 0x1000, 0, true, true, bias},
		{"text split by mprotect", lld, bias + 0x3000, 0x2000, true, true, bias},
		{"data of two segments", lld, bias + 0x4000, 0x2000, false, false, 0},
		{"behind all", lld, bias, 0x8000, true, false, 0},
		{"far behind", lld, bias, 1 << 63, true, false, 0},
		{"no-pie", exec, 0x401000, 0x1000, true, true, 0},
		{"no-pie headers", exec, 0x400000, 0, false, true, 0},
		{"64 KiB pages", arm, bias + 0x20000, 0x10000, true, true, bias},
		{"4 KiB pages", arm, bias + 0x20000, 0x10000, true, true, bias},
		{"too far before", arm, bias, 0, true, false, 0},
	}
	for _, test := range tests {
		got, ok := test.file.LoadBias(test.start, test.offset, test.executable)
		require.Equal(t, test.ok, ok, test.name)
		require.Equal(t, test.want, got, test.name)
	}
}

// What stands behind DT_NULL does not count. Linkers leave spare entries there.
func TestDynamicSectionEnd(t *testing.T) {
	f := open(t, corpus.Library(t, corpus.GCC), func(b []byte) {
		for off := 64; ; off += 56 {
			if elf.ProgType(binary.LittleEndian.Uint32(b[off:])) != elf.PT_DYNAMIC {
				continue
			}
			at := binary.LittleEndian.Uint64(b[off+8:])
			last := at + binary.LittleEndian.Uint64(b[off+32:]) - 16
			require.Zero(t, binary.LittleEndian.Uint64(b[last-16:]), "spare entries")
			put64(int(last), uint64(elf.DT_DEBUG))(b)
			return
		}
	})
	require.False(t, f.IsExecutable())
}
