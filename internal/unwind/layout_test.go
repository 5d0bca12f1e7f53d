package unwind_test

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// piece is an address at which a rule begins, from imageText.
type piece struct {
	at   uint64
	rule record.UnwindRule
}

func pieces(t *testing.T, made *unwind.Table) (all []piece) {
	t.Helper()
	consistent(t, made)
	made.Each(func(vaddr uint64, r record.UnwindRule) bool {
		all = append(all, piece{vaddr - imageText, r})
		return true
	})
	return all
}

// function of an image: FDE of [start, end) with a CFA at rsp + cfa.
type function struct{ start, end, cfa uint64 }

func (m *image) functions(list ...function) *image {
	cie := m.cie("", nil, usual)
	for _, f := range list {
		m.fde(cie, f.start, f.end-f.start, false, 0x0e, byte(f.cfa))
	}
	return m
}

func TestLayout(t *testing.T) {
	none := record.UnwindRule{}
	for name, c := range map[string]struct {
		functions []function
		want      []piece
		overlaps  int
	}{
		"gaps": {
			functions: []function{{16, 32, 16}, {48, 64, 24}},
			want:      []piece{{0, none}, {16, pushed(16)}, {32, none}, {48, pushed(24)}, {64, none}},
		},
		"same rules": {
			functions: []function{{0, 32, 16}, {32, 64, 16}, {64, 80, 16}},
			want:      []piece{{0, pushed(16)}, {80, none}},
		},
		"out of order": {
			functions: []function{{32, 48, 24}, {16, 32, 16}, {0, 16, 8}},
			want:      []piece{{0, pushed(8)}, {16, pushed(16)}, {32, pushed(24)}, {48, none}},
		},
		"to the end of a block": {
			functions: []function{{0, 1024, 16}},
			want:      []piece{{0, pushed(16)}},
		},
		"over blocks": {
			functions: []function{{1020, 2052, 16}, {3072, 3073, 16}},
			want:      []piece{{0, none}, {1020, pushed(16)}, {2052, none}, {3072, pushed(16)}, {3073, none}},
		},
		"first block empty": {
			functions: []function{{2048, 2050, 16}},
			want:      []piece{{2048, pushed(16)}, {2050, none}},
		},
		"inner": {
			functions: []function{{0, 64, 16}, {16, 32, 24}},
			want:      []piece{{0, pushed(16)}, {16, pushed(24)}, {32, none}},
			overlaps:  1,
		},
		"later start": {
			functions: []function{{16, 48, 24}, {0, 32, 16}},
			want:      []piece{{0, pushed(16)}, {16, pushed(24)}, {48, none}},
			overlaps:  1,
		},
		"longer": {
			functions: []function{{0, 32, 16}, {0, 48, 24}, {0, 16, 32}},
			want:      []piece{{0, pushed(24)}, {48, none}},
			overlaps:  2,
		},
		"first of equals": {
			functions: []function{{0, 32, 16}, {0, 32, 24}},
			want:      []piece{{0, pushed(16)}, {32, none}},
			overlaps:  1,
		},
		"outside": {
			functions: []function{{0, 32, 16}, {4090, 4097, 24}, {1 << 40, 1<<40 + 16, 24}, {16, 16, 24}, {1<<64 - 64, 1<<64 - 1, 24}},
			want:      []piece{{0, pushed(16)}, {32, none}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := newImage(4096).functions(c.functions...).compile()
			require.NoError(t, err)
			require.Equal(t, c.want, pieces(t, made))
			require.Equal(t, c.overlaps, made.Stats.Counts[unwind.ReasonOverlap])
		})
	}
}

// What holds at an address, by the rule alone: the functions that start last, of
// those the longest, of those the first.
func TestRandomLayouts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		list := make([]function, 1+r.IntN(12))
		for i := range list {
			start := r.Uint64N(4000)
			list[i] = function{start, min(start+1+r.Uint64N(1500), 4096), 8 * (1 + r.Uint64N(4))}
		}
		made, err := newImage(4096).functions(list...).compile()
		require.NoError(t, err)
		consistent(t, made)
		for at := range uint64(4096) {
			best := -1
			for i, f := range list {
				if at >= f.start && (best < 0 || f.start > list[best].start || f.start == list[best].start && f.end > list[best].end) {
					best = i
				}
			}
			want := record.UnwindRule{}
			if best >= 0 && at < list[best].end {
				want = pushed(int32(list[best].cfa))
			}
			if got, _ := made.Lookup(imageText + at); got != want {
				t.Fatalf("%v: at %d %+v, not %+v", list, at, got, want)
			}
		}
	}
}

// A function of more bytes than fit into a row's length.
func TestLongFunction(t *testing.T) {
	made, err := newImage(1 << 20).functions(function{10, 1<<20 - 1, 16}).compile()
	require.NoError(t, err)
	require.Equal(t, []piece{{0, record.UnwindRule{}}, {10, pushed(16)}, {1<<20 - 1, record.UnwindRule{}}}, pieces(t, made))
}

// Code that the linker has removed has FDEs at address 0.
func TestRemovedFunction(t *testing.T) {
	m := newImage(4096).functions(function{16, 32, 16})
	zero := uint64(0)
	m.fde(0, zero-imageText, 64, false, 0x0e, 24)
	made, err := m.compile()
	require.NoError(t, err)
	require.Len(t, made.Rows, 3)
	require.Equal(t, 1, made.Stats.Counts[unwind.ReasonOutside])
}

// So do they where the text is that of a library whose first segment has its headers and code,
// and address 0 is in it.
func TestZeroStart(t *testing.T) {
	m := newImage(4096)
	cie, zero := m.cie("", nil, usual), uint64(0)
	m.fde(cie, zero+16-imageText, 16, false, 0x0e, 16)
	m.fde(cie, zero-imageText, 64, false, 0x0e, 24)
	b := m.bytes()
	const vaddr = 64 + 56 + 16 // of the second program header
	clear(b[vaddr : vaddr+16])
	made, err := compile(b, unwind.Limits{})
	require.NoError(t, err)
	require.Equal(t, 1, made.Stats.Counts[unwind.ReasonOutside])
	var all []piece
	made.Each(func(vaddr uint64, r record.UnwindRule) bool {
		all = append(all, piece{vaddr, r})
		return true
	})
	require.Equal(t, []piece{{0, record.UnwindRule{}}, {16, pushed(16)}, {32, record.UnwindRule{}}}, all)
}

func TestPointerEncodings(t *testing.T) {
	le := binary.LittleEndian
	for name, c := range map[string]struct {
		encoding byte
		put      func(b []byte, at uint64) []byte // address imageText + 16, 8 bytes
	}{
		"absptr":  {0x00, func(b []byte, _ uint64) []byte { return le.AppendUint64(le.AppendUint64(b, imageText+16), 8) }},
		"udata4":  {0x03, func(b []byte, _ uint64) []byte { return le.AppendUint32(le.AppendUint32(b, imageText+16), 8) }},
		"udata8":  {0x04, func(b []byte, _ uint64) []byte { return le.AppendUint64(le.AppendUint64(b, imageText+16), 8) }},
		"uleb128": {0x01, func(b []byte, _ uint64) []byte { return append(binary.AppendUvarint(b, imageText+16), 8) }},
		"sdata4":  {0x0b, func(b []byte, _ uint64) []byte { return le.AppendUint32(le.AppendUint32(b, imageText+16), 8) }},
		"pcrel sdata4": {0x1b, func(b []byte, at uint64) []byte {
			return le.AppendUint32(le.AppendUint32(b, uint32(imageText+16-at)), 8)
		}},
		"pcrel sdata8":  {0x1c, func(b []byte, at uint64) []byte { return le.AppendUint64(le.AppendUint64(b, imageText+16-at), 8) }},
		"pcrel absptr":  {0x10, func(b []byte, at uint64) []byte { return le.AppendUint64(le.AppendUint64(b, imageText+16-at), 8) }},
		"pcrel sleb128": {0x19, func(b []byte, at uint64) []byte { return append(sleb(b, int64(imageText+16-at)), 8) }},
	} {
		for _, wide := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				m := newImage(64)
				m.wide = wide
				cie := m.cie("zPLR", append([]byte{0x9b, 1, 2, 3, 4, 0x1b}, c.encoding), usual)
				at := imageFrame + uint64(len(m.frame)) + 8
				if wide {
					at += 8
				}
				m.entry(m.reference(cie), append(c.put(nil, at), 4, 1, 2, 3, 4, 0x0e, 16))
				made, err := m.compile()
				require.NoError(t, err)
				require.Equal(t, []piece{{0, record.UnwindRule{}}, {16, pushed(16)}, {24, record.UnwindRule{}}}, pieces(t, made))
			})
		}
	}
}

func sleb(b []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// What does not belong to any function costs none.
func TestOddEntries(t *testing.T) {
	want := []piece{{0, record.UnwindRule{}}, {16, pushed(16)}, {32, record.UnwindRule{}}}
	for name, c := range map[string]struct {
		add    func(m *image)
		reason unwind.Reason
	}{
		"terminator":         {func(m *image) { m.frame = append(m.frame, 0, 0, 0, 0) }, unwind.ReasonNone},
		"empty":              {func(m *image) { m.frame = append(m.frame, 1, 0, 0, 0, 7) }, unwind.ReasonMalformed},
		"no CIE":             {func(m *image) { m.fde(m.reference(3), 0, 16, false) }, unwind.ReasonCIE},
		"unknown version":    {func(m *image) { m.fde(m.entry(0, []byte{9, 0, 1, 0x78, 16}), 0, 16, false) }, unwind.ReasonCIE},
		"unknown letter":     {func(m *image) { m.fde(m.cie("zX", nil, usual), 0, 16, true) }, unwind.ReasonCIE},
		"unknown encoding":   {func(m *image) { m.fde(m.cie("zR", []byte{0x3b}, usual), 0, 16, true) }, unwind.ReasonCIE},
		"indirect":           {func(m *image) { m.fde(m.cie("zR", []byte{0x9b}, usual), 0, 16, true) }, unwind.ReasonCIE},
		"CIE that advances":  {func(m *image) { m.fde(m.cie("", nil, append(usual, 0x41)), 0, 16, false) }, unwind.ReasonCIE},
		"CIE cut short":      {func(m *image) { m.fde(m.cie("", nil, []byte{0x0c, 7}), 0, 16, false) }, unwind.ReasonCIE},
		"FDE cut short":      {func(m *image) { m.entry(m.reference(0), []byte{1, 2, 3}) }, unwind.ReasonMalformed},
		"augmentation short": {func(m *image) { m.fde(m.cie("zR", []byte{absolute}, usual), 0, 16, false, 0x7f) }, unwind.ReasonMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			m := newImage(64)
			m.functions()
			c.add(m)
			m.functions(function{16, 32, 16})
			made, err := m.compile()
			require.NoError(t, err)
			require.Equal(t, want, pieces(t, made))
			if c.reason != unwind.ReasonNone {
				require.Equal(t, 1, made.Stats.Counts[c.reason], "%+v", made.Stats)
			}
		})
	}
}

// Nothing says what follows a description that is too long.
func TestTooLongEntry(t *testing.T) {
	m := newImage(64).functions(function{16, 32, 16})
	m.entry(1, make([]byte, 2<<20))
	m.functions(function{32, 48, 24})
	made, err := m.compile()
	require.NoError(t, err)
	require.Equal(t, []piece{{0, record.UnwindRule{}}, {16, pushed(16)}, {32, record.UnwindRule{}}}, pieces(t, made))
	require.Equal(t, 1, made.Stats.Counts[unwind.ReasonEntryBytes])
}

// CIE and FDE of .debug_frame, of both widths.
func TestDebugFrameImage(t *testing.T) {
	for _, wide := range []bool{false, true} {
		m := newImage(64)
		m.debug, m.wide = true, wide
		made, err := m.functions(function{16, 32, 16}, function{32, 48, 24}).compile()
		require.NoError(t, err)
		require.Equal(t, unwind.SourceDebugFrame, made.Stats.Source)
		require.Equal(t, []piece{{0, record.UnwindRule{}}, {16, pushed(16)}, {32, pushed(24)}, {48, record.UnwindRule{}}}, pieces(t, made))
	}
}

func TestLimits(t *testing.T) {
	many := make([]function, 100)
	for i := range many {
		many[i] = function{uint64(16 * i), uint64(16*i + 8), uint64(8 + i)}
	}
	file := newImage(4096).functions(many...).bytes()
	for name, limits := range map[string]unwind.Limits{
		"section":   {SectionBytes: 1000},
		"text":      {TextBytes: 4095},
		"rows":      {Rows: 99},
		"functions": {Functions: 99},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := compile(file, limits)
			require.ErrorIs(t, err, unwind.ErrLimit)
			var limit *unwind.LimitError
			require.ErrorAs(t, err, &limit)
		})
	}
	made, err := compile(file, unwind.Limits{SectionBytes: 1 << 20, TextBytes: 4096, Rows: 100, Functions: 100, Rules: 11})
	require.NoError(t, err)
	consistent(t, made)
	require.Len(t, made.Rules, 11)
	require.Equal(t, 90, made.Stats.Counts[unwind.ReasonRules])
	got, _ := made.Lookup(imageText + 16*9)
	require.Equal(t, pushed(17), got)
	got, _ = made.Lookup(imageText + 16*10)
	require.Equal(t, record.UnwindRule{}, got)

	_, err = newImage(4096).functions().compile()
	require.True(t, errors.Is(err, unwind.ErrNone), "%v", err)
}

// Trampolines of C libraries that describe none, wherever they lie.
func TestTrampolines(t *testing.T) {
	x86 := "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"
	signal := record.UnwindRule{CFA: record.CFASignal}
	for name, c := range map[string]struct {
		code    string
		machine elf.Machine
		at      uint64
		lead    uint64
		behind  uint64 // where the address is in the system call
		covered []function
	}{
		"musl":              {x86, elf.EM_X86_64, 5000, 1, 1, nil},
		"short":             {"\xb8\x0f\x00\x00\x00\x0f\x05", elf.EM_X86_64, 5000, 1, 1, nil},
		"aarch64":           {"\x68\x11\x80\xd2\x01\x00\x00\xd4", elf.EM_AARCH64, 5000, 4, 4, nil},
		"aarch64 w8":        {"\x68\x11\x80\x52\x01\x00\x00\xd4", elf.EM_AARCH64, 5000, 4, 4, nil},
		"at the start":      {x86, elf.EM_X86_64, 0, 0, 1, nil},
		"at the end":        {x86, elf.EM_X86_64, 65536 - 9, 1, 0, nil},
		"behind a function": {x86, elf.EM_X86_64, 5000, 0, 0, []function{{4000, 5000, 16}, {5009, 5100, 16}}},
		"over two reads":    {x86, elf.EM_X86_64, 16384 - 4, 1, 1, nil},
		"end of a read":     {x86, elf.EM_X86_64, 16384 - 9, 1, 1, nil},
		"start of a read":   {x86, elf.EM_X86_64, 16384 - 8, 1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := newImage(65536)
			m.machine = c.machine
			copy(m.text[c.at:], c.code)
			if len(c.covered) > 0 {
				m.functions(c.covered...)
			}
			made, err := m.compile()
			require.NoError(t, err)
			consistent(t, made)
			require.Equal(t, 1, made.Stats.Trampolines)
			for at := c.at - c.lead; at < c.at+uint64(len(c.code))+c.behind; at++ {
				got, _ := made.Lookup(imageText + at)
				require.Equal(t, signal, got)
			}
			after, _ := made.Lookup(imageText + c.at + uint64(len(c.code)) + c.behind)
			require.NotEqual(t, signal, after)
			before, _ := made.Lookup(imageText + c.at - c.lead - 1)
			require.NotEqual(t, signal, before)
		})
	}
	t.Run("in a function", func(t *testing.T) {
		m := newImage(65536)
		copy(m.text[5000:], x86)
		made, err := m.functions(function{4999, 5010, 16}).compile()
		require.NoError(t, err)
		require.Zero(t, made.Stats.Trampolines)
	})
	t.Run("beyond the limit", func(t *testing.T) {
		m := newImage(65536)
		copy(m.text[60000:], x86)
		_, err := compile(m.bytes(), unwind.Limits{SearchBytes: 32768})
		require.ErrorIs(t, err, unwind.ErrNone)
	})
	t.Run("not aligned", func(t *testing.T) {
		m := newImage(65536)
		m.machine = elf.EM_AARCH64
		copy(m.text[5001:], "\x68\x11\x80\xd2\x01\x00\x00\xd4")
		_, err := m.compile()
		require.ErrorIs(t, err, unwind.ErrNone)
	})
	t.Run("described", func(t *testing.T) {
		m := newImage(65536)
		m.machine = elf.EM_AARCH64
		copy(m.text[5004:], "\x68\x11\x80\xd2\x01\x00\x00\xd4")
		cie := m.cie("zRS", []byte{absolute}, []byte{0x0c, 29, 0})
		m.fde(cie, 5000, 12, true)
		m.fde(cie, 6000, 12, true)
		made, err := m.compile()
		require.NoError(t, err)
		require.Equal(t, 1, made.Stats.Counts[unwind.ReasonSignal])
		got, _ := made.Lookup(imageText + 5000)
		require.Equal(t, signal, got)
		got, _ = made.Lookup(imageText + 6000)
		require.Equal(t, record.UnwindRule{}, got)
	})
}
