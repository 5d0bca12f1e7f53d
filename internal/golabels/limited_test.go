package golabels

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// A program whose debug information takes too long to read is read by its release, which is told.
func TestLimitedByPace(t *testing.T) {
	data, _ := program(t, "gowriter-static")
	before, err := planOf(data)
	require.NoError(t, err)
	require.True(t, before.FromDWARF)
	require.False(t, before.Limited)
	enough := errors.New("enough")
	limited := 0
	for most := range 1000 {
		f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		steps := 0
		f.Pace(func() error {
			if steps++; steps > most {
				return enough
			}
			return nil
		})
		after, err := NewPlan(f)
		switch {
		case err != nil: // not for its debug information
			require.ErrorIs(t, err, enough)
		case steps <= most:
			require.NotZero(t, limited)
			require.Equal(t, before, after)
			return
		default:
			require.False(t, after.FromDWARF)
			require.True(t, after.Limited, most)
			require.Equal(t, before.Layout, after.Layout)
			limited++
		}
	}
	require.Fail(t, "it takes more steps")
}

// sparse is a file that has zeros behind its bytes.
type sparse struct{ bytes []byte }

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(s.bytes)) {
		n = copy(p, s.bytes[off:])
	}
	clear(p[n:])
	return len(p), nil
}

// Of debug information, so much is read. That there is more is told, that it ends too early is damage.
func TestLimitedBySize(t *testing.T) {
	data, f := program(t, "gowriter-static")
	const more = 16 << 20
	for name, c := range map[string]struct {
		unit    uint32 // its length
		size    int64  // of .debug_info
		limited bool
	}{
		"a unit that is too long":     {maxInfoBytes + more, maxInfoBytes + 2*more, true},
		"a unit with an end too late": {more, more / 2, false},
		"a unit without an end":       {more, 4 + 8, false},
		"other units":                 {more, 4 + more, false},
	} {
		changed := sparse{withDebug(t, data, f, typeAbbrevs(), otherUnit(c.unit), false)}
		setSize(changed.bytes, f, ".debug_info", c.size)
		e, err := elffile.New(changed, int64(len(changed.bytes))+c.size)
		require.NoError(t, err)
		after, err := NewPlan(e)
		require.NoError(t, err)
		require.False(t, after.FromDWARF, name)
		require.Equal(t, c.limited, after.Limited, name)
	}
}

// What could not be read is told, what says nothing is not.
func TestCutShort(t *testing.T) {
	for _, err := range []error{nil, errNoDebugInfo, errNoTypes, errDamaged, (&cursor{err: io.EOF}).damage("", 0), (&cursor{err: io.ErrUnexpectedEOF}).damage("", 0)} {
		require.False(t, cutShort(err), "%v", err)
	}
	for _, err := range []error{errTooMuch, errInfo, errTables, errLinks, elffile.ErrUnsupported, &elffile.FormatError{}, (&cursor{err: io.ErrNoProgress}).damage("", 0)} {
		require.True(t, cutShort(err), "%v", err)
	}
}

// otherUnit is the head of a unit of another package.
func otherUnit(length uint32) []byte {
	b := append(binary.LittleEndian.AppendUint32(nil, length), 4, 0, 0, 0, 0, 0, wordBytes, codeUnit)
	return append(b, "main\x00"...)
}

// setSize changes what a program says of the size of a section.
func setSize(data []byte, f *elf.File, name string, size int64) {
	for i, s := range f.Sections {
		if s.Name == name {
			// e_shoff + i * sizeof(Elf64_Shdr) + offsetof(sh_size)
			binary.LittleEndian.PutUint64(data[binary.LittleEndian.Uint64(data[40:])+uint64(64*i)+32:], uint64(size))
		}
	}
}
