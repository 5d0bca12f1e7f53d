package unwind_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// one compiles a single function of 8 bytes and returns the rule of its first one.
func one(t *testing.T, instructions ...byte) record.UnwindRule {
	t.Helper()
	m := newImage(64)
	m.fde(m.cie("", nil, usual), 0, 8, false, instructions...)
	made, err := m.compile()
	require.NoError(t, err)
	r, ok := made.Lookup(imageText)
	require.True(t, ok)
	return r
}

// An expression is recognised by all of it.
func TestExpressions(t *testing.T) {
	for name, c := range map[string]struct {
		expression []byte
		known      bool
	}{
		"on the stack":              {[]byte{0x77, 16, 0x06, 0x23, 8}, true},
		"more behind the addition":  {[]byte{0x77, 16, 0x06, 0x23, 8, 0x96}, false},
		"more behind, once more":    {[]byte{0x77, 16, 0x06, 0x23, 8, 0x06}, false},
		"linkage table":             {[]byte{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, true},
		"of the frame register":     {[]byte{0x76, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, false},
		"of no instruction pointer": {[]byte{0x77, 8, 0x7f, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, false},
		"of the instruction behind": {[]byte{0x77, 8, 0x80, 1, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, false},
		"of other low bits":         {[]byte{0x77, 8, 0x80, 0, 0x3e, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}, false},
	} {
		r := one(t, append([]byte{0x0f, byte(len(c.expression))}, c.expression...)...)
		require.Equal(t, c.known, r != record.UnwindRule{}, "%s: %+v", name, r)
	}
}

// A factored offset that overflows is no small one.
func TestOverflowingOffset(t *testing.T) {
	require.Equal(t, pushed(16), one(t, append([]byte{0x13}, sleb(nil, -2)...)...))
	for _, v := range []int64{1 << 61, -1 << 61, 1<<61 + 1, 1 << 62} { // times -8, modulo 2^64
		require.Equal(t, record.UnwindRule{}, one(t, append([]byte{0x13}, sleb(nil, v)...)...), "%#x", v)
	}
}

// As many states are put aside as there is room for, and the rest is refused.
func TestRememberedStates(t *testing.T) {
	const most = 16
	deep := func(n int) (instructions []byte) {
		for range n {
			instructions = append(instructions, 0x0a)
		}
		return append(instructions, 0x0e, 24)
	}
	require.Equal(t, pushed(24), one(t, deep(most)...))
	require.Equal(t, record.UnwindRule{}, one(t, deep(most+1)...))
}

// Advances count in units that the CIE says.
func TestCodeAlignment(t *testing.T) {
	for _, advance := range [][]byte{{0x41}, {0x02, 1}, {0x03, 1, 0}, {0x04, 1, 0, 0, 0}, {0x1d, 1, 0, 0, 0, 0, 0, 0, 0}} {
		m := newImage(64)
		cie := m.entry(0, append([]byte{1, 0, 4, 0x78, 16}, usual...))
		m.fde(cie, 16, 16, false, append(advance, 0x0e, 24)...)
		made, err := m.compile()
		require.NoError(t, err)
		require.Equal(t, []piece{{0, record.UnwindRule{}}, {16, pushed(8)}, {20, pushed(24)}, {32, record.UnwindRule{}}}, pieces(t, made))
	}
}

// CIEs of the fourth version are read with addresses of 8 bytes and without segments.
func TestAddressBytes(t *testing.T) {
	for _, c := range []struct {
		address, segment byte
		ok               bool
	}{{8, 0, true}, {4, 0, false}, {8, 2, false}} {
		m := newImage(64)
		cie := m.entry(0, append([]byte{4, 0, c.address, c.segment, 1, 0x78, 16}, usual...))
		m.fde(cie, 0, 16, false)
		m.functions(function{32, 48, 24})
		made, err := m.compile()
		require.NoError(t, err)
		r, ok := made.Lookup(imageText)
		require.True(t, ok)
		if c.ok {
			require.Equal(t, pushed(8), r)
		} else {
			require.Equal(t, record.UnwindRule{}, r)
			require.Equal(t, 1, made.Stats.Counts[unwind.ReasonCIE])
		}
	}
}

// Each limit is named when it is met.
func TestLimitNames(t *testing.T) {
	file := newImage(4096).functions(function{0, 8, 16}, function{16, 24, 24}, function{32, 40, 32}).bytes()
	for says, limits := range map[string]unwind.Limits{"functions": {Functions: 2}, "rows": {Rows: 2}, "bytes of text": {TextBytes: 100}} {
		_, err := compile(file, limits)
		require.ErrorIs(t, err, unwind.ErrLimit)
		require.ErrorContains(t, err, says)
	}
}

// What a segment says beyond the end of the file is no text.
func TestSegmentBehindTheFile(t *testing.T) {
	b := newImage(64).functions(function{0, 8, 16}).bytes()
	const second = 64 + 56 // program header
	for _, at := range []int{32, 40} {
		binary.LittleEndian.PutUint64(b[second+at:], 1<<40) // p_filesz, p_memsz
	}
	made, err := compile(b, unwind.Limits{})
	require.NoError(t, err)
	require.Less(t, made.Limit()-imageText, uint64(len(b)+record.UnwindBlockBytes))
}

// Go's functions that set the stack pointer go on from another stack, those that nothing
// has called end it. What runtime.morestack calls is not whole without the goroutine's.
func TestGoSwitches(t *testing.T) {
	path := buildGo(t, "amd64")
	rows := table(t, path)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	st, err := f.Stat()
	require.NoError(t, err)
	e, err := elffile.New(f, st.Size())
	require.NoError(t, err)
	found, err := gopclntab.Find(e)
	require.NoError(t, err)
	switches := 0
	args := map[string]uint8{}
	reader := gopclntab.NewReader(found, f)
	require.NoError(t, reader.Functions(func(fn gopclntab.Func) bool {
		if fn.Flags&gopclntab.SPWrite != 0 && fn.Flags&gopclntab.TopFrame == 0 {
			r, ok := rows.Lookup(fn.Entry)
			require.True(t, ok)
			if r.CFA == record.CFASwitch {
				name, err := reader.Name(&fn)
				require.NoError(t, err)
				switches++
				args[name] = r.Arg
			}
		}
		return true
	}))
	require.Greater(t, switches, 2)
	for _, name := range []string{"runtime.mcall", "runtime.morestack"} {
		require.Contains(t, args, name)
	}
	for name, arg := range args {
		require.Equal(t, name == "runtime.morestack", arg != 0, name)
	}
}
