package unwind_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// smallLimits keep the work of a fuzzer's file small.
var smallLimits = unwind.Limits{SectionBytes: 64 << 10, TextBytes: 1 << 20, Rows: 4096, Rules: 64, SearchBytes: 64 << 10}

// FuzzFrames compiles hostile call frame information of a text that is sound. The
// first byte says of which machine and section.
func FuzzFrames(f *testing.F) {
	var seeds [][]byte
	for flags := range byte(8) {
		for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
			b, err := os.ReadFile(corpus.Library(f, compiler, "-nostdlib"))
			require.NoError(f, err)
			e, err := elf.NewFile(bytes.NewReader(b))
			require.NoError(f, err)
			if s := e.Section(".eh_frame"); s != nil {
				data, err := s.Data()
				require.NoError(f, err)
				seeds = append(seeds, append([]byte{flags}, data...))
			}
		}
		m := fuzzImage(flags)
		m.functions(function{16, 32, 16}, function{32, 48, 24}, function{40, 64, 8})
		m.fde(m.cie("zPLRS", []byte{0x9b, 1, 2, 3, 4, 0x1b, absolute}, usual), 2048, 100, true,
			0x0a, 0x0f, 3, 0x77, 16, 0x06, 0x44, 0x0b, 0x02, 9, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22)
		seeds = append(seeds, append([]byte{flags}, m.frame...))
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) == 0 || len(data) > 64<<10 {
			return
		}
		m := fuzzImage(data[0])
		m.frame = data[1:]
		check(t, m.bytes())
	})
}

func fuzzImage(flags byte) *image {
	m := newImage(8192)
	if flags&1 != 0 {
		m.machine = elf.EM_AARCH64
	}
	m.debug, m.wide = flags&2 != 0, flags&4 != 0
	copy(m.text[4000:], "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05")
	copy(m.text[5000:], "\x68\x11\x80\xd2\x01\x00\x00\xd4")
	return m
}

// FuzzTable compiles whole files that are hostile.
func FuzzTable(f *testing.F) {
	var seeds [][]byte
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, flags := range [][]string{
			{"-Wl,--eh-frame-hdr", "-fasynchronous-unwind-tables"},
			{"-g", "-fno-asynchronous-unwind-tables"},
			{"-g", "-gz=zlib", "-fno-asynchronous-unwind-tables"},
		} {
			args := append([]string{"-nostdlib", "-Wl,-z,max-page-size=64,-z,noseparate-code,-z,norelro"}, flags...)
			b, err := os.ReadFile(corpus.Library(f, compiler, args...))
			require.NoError(f, err)
			seeds = append(seeds, b)
		}
	}
	for _, seed := range seeds[:1] { // without section headers
		b := bytes.Clone(seed)
		binary.LittleEndian.PutUint64(b[40:], 0)
		seeds = append(seeds, b)
	}
	seeds = append(seeds, fuzzImage(0).functions(function{16, 32, 16}).bytes())
	fuzz.Run(f, seeds, check)
}

// check compiles a file: a table is consistent and within bounds, an error is one
// of those that are documented.
func check(t testing.TB, file []byte) {
	made, err := compile(file, smallLimits)
	if err != nil {
		if made != nil {
			t.Fatal("a table and an error")
		}
		return
	}
	consistent(t, made)
	text := uint64(0)
	if e, err := elffile.New(bytes.NewReader(file), int64(len(file))); err == nil {
		first, last := ^uint64(0), uint64(0)
		for s := range e.Loads() {
			if s.Flags&elf.PF_X != 0 && s.Filesz > 0 {
				first, last = min(first, s.Vaddr), max(last, s.Vaddr+s.Filesz)
			}
		}
		text = last - first
	}
	if made.Limit()-made.Base > min(text, smallLimits.TextBytes)+2*record.UnwindBlockBytes {
		t.Fatalf("%d bytes of table for %d of text", made.Limit()-made.Base, text)
	}
	if len(made.Rows) > 3*smallLimits.Rows || len(made.Rules) > smallLimits.Rules {
		t.Fatalf("%d rows, %d rules", len(made.Rows), len(made.Rules))
	}
}
