package elffile_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// scattered is a file whose .symtab has as many functions as are read at all,
// with names all over a string table of 4 GiB.
type scattered struct {
	sparse
	symtab, symtabBytes, strtab int64
	names                       []byte // what the string table repeats
}

func (s *scattered) ReadAt(p []byte, off int64) (int, error) {
	switch {
	case off >= s.strtab:
		s.bytes += len(p)
		for n := 0; n < len(p); {
			n += copy(p[n:], s.names)
		}
		return len(p), nil
	case off >= s.symtab && off < s.symtab+s.symtabBytes:
		s.bytes += len(p)
		for i := 0; i+24 <= len(p); i += 24 {
			n := uint32(off-s.symtab+int64(i)) / 24
			binary.LittleEndian.PutUint32(p[i:], n*2654435761) // Knuth's multiplicative hash
			binary.LittleEndian.PutUint32(p[i+4:], 0x10012)    // a global function in section 1
			binary.LittleEndian.PutUint64(p[i+8:], uint64(n))
		}
		return len(p), nil
	}
	return s.sparse.ReadAt(p, off)
}

// Names in the order of a shuffled deck, short ones and ones without end, cost a
// bounded number of bytes and hardly any memory.
func TestHostileNames(t *testing.T) {
	const functions = 2 << 20
	tests := []struct {
		name     string
		names    []byte
		all      bool
		maxBytes int
	}{
		{"short", bytes.Repeat([]byte("a_name\x00"), 2048), true, 24*functions + 129*functions},
		{"without end", bytes.Repeat([]byte("x"), 1<<14), false, 24*functions + 512<<20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHostile(t)
			h.section(".symtab", 24*functions)
			h.section(".strtab", 1<<32)
			s := scattered{sparse: h.sparse, symtab: 1 << 40, symtabBytes: 24 * functions, strtab: 1 << 41, names: test.names}
			shoff := binary.LittleEndian.Uint64(s.head[40:])
			for i, section := range h.oracle.Sections {
				switch section.Name {
				case ".symtab":
					put64(int(shoff)+64*i+24, uint64(s.symtab))(s.head)
				case ".strtab":
					put64(int(shoff)+64*i+24, uint64(s.strtab))(s.head)
				}
			}
			f, err := elffile.New(&s, sparseBytes)
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			calls := 0
			err = f.Functions(func(elffile.Function) bool { calls++; return true })
			runtime.ReadMemStats(&after)
			if test.all {
				require.NoError(t, err)
				require.GreaterOrEqual(t, calls, functions/10*8, "all but those that begin at a NUL")
			} else {
				require.ErrorContains(t, err, "bytes of names")
			}
			require.Less(t, s.bytes, test.maxBytes+1<<20)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<10))
			t.Logf("%d functions, %d bytes read", calls, s.bytes)
		})
	}
}
