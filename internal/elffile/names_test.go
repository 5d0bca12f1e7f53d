package elffile_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// scattered is a file whose .symtab has as many symbols as are read at all, all
// of one kind, with names all over a string table of 4 GiB.
type scattered struct {
	sparse
	symtab, symtabBytes, strtab int64
	names                       []byte // what the string table repeats
	info                        byte   // of all symbols
	size                        uint64
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
			binary.LittleEndian.PutUint32(p[i+4:], 0x10000|uint32(s.info))
			binary.LittleEndian.PutUint64(p[i+8:], uint64(n))
			binary.LittleEndian.PutUint64(p[i+16:], s.size)
		}
		return len(p), nil
	}
	return s.sparse.ReadAt(p, off)
}

// newScattered makes one of a library.
func newScattered(t *testing.T, names []byte, info byte, size uint64) *scattered {
	h := newHostile(t)
	h.section(".symtab", 24*scatteredSymbols)
	h.section(".strtab", 1<<32)
	s := &scattered{
		sparse: h.sparse, symtab: 1 << 40, symtabBytes: 24 * scatteredSymbols, strtab: 1 << 41, names: names, info: info, size: size,
	}
	shoff := binary.LittleEndian.Uint64(s.head[40:])
	for i, section := range h.oracle.Sections {
		switch section.Name {
		case ".symtab":
			put64(int(shoff)+64*i+24, uint64(s.symtab))(s.head)
		case ".strtab":
			put64(int(shoff)+64*i+24, uint64(s.strtab))(s.head)
		}
	}
	return s
}

const scatteredSymbols = 2 << 20

// Names in the order of a shuffled deck, short ones and ones without end, cost a
// bounded number of bytes and hardly any memory.
func TestHostileNames(t *testing.T) {
	tests := []struct {
		name     string
		names    []byte
		all      bool
		maxBytes int
	}{
		{"short", bytes.Repeat([]byte("a_name\x00"), 2048), true, (24 + 129) * scatteredSymbols},
		{"without end", bytes.Repeat([]byte("x"), 1<<14), false, 24*scatteredSymbols + 512<<20},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newScattered(t, test.names, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), 0)
			calls, allocated := 0, uint64(0)
			err := s.ask(t, &allocated, func(f *elffile.File) error {
				return f.Functions(func(elffile.Function) bool { calls++; return true })
			})
			if test.all {
				require.NoError(t, err)
				require.GreaterOrEqual(t, calls, scatteredSymbols/10*8, "all but those that begin at a NUL")
			} else {
				require.ErrorContains(t, err, "bytes of names")
			}
			require.Less(t, s.bytes, test.maxBytes+1<<20)
			require.Less(t, allocated, uint64(256<<10))
			t.Logf("%d functions, %d bytes read", calls, s.bytes)
		})
	}
}

// ask opens the file and counts what a question allocates.
func (s *scattered) ask(t *testing.T, allocated *uint64, question func(*elffile.File) error) error {
	t.Helper()
	f, err := elffile.New(s, sparseBytes)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = question(f)
	runtime.ReadMemStats(&after)
	*allocated = after.TotalAlloc - before.TotalAlloc
	return err
}

// A symbol that is among those that are kept is found however many more there are.
func TestKeptAmongMany(t *testing.T) {
	names := append([]byte("custom_labels_abi_version\x00"), bytes.Repeat([]byte("x"), 1<<14)...)
	s := newScattered(t, names, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), 4)
	allocated := uint64(0)
	err := s.ask(t, &allocated, func(f *elffile.File) error {
		_, ok, err := f.IntSymbol("custom_labels_abi_version")
		require.True(t, ok)
		return err
	})
	require.NoError(t, err)
}

// So many thread-local variables, or numbers, as no file has.
func TestHostileKinds(t *testing.T) {
	names := bytes.Repeat([]byte("x"), 1<<14)
	allocated := uint64(0)
	s := newScattered(t, names, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_TLS), 8)
	err := s.ask(t, &allocated, func(f *elffile.File) error {
		_, _, err := f.TLSSymbol("custom_labels_current_set")
		return err
	})
	require.ErrorContains(t, err, "number of thread-local symbols")
	require.Less(t, s.bytes, 24*scatteredSymbols+20<<20)
	require.Less(t, allocated, uint64(4<<20))

	s = newScattered(t, names, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT), 4)
	err = s.ask(t, &allocated, func(f *elffile.File) error {
		_, _, err := f.IntSymbol("custom_labels_abi_version")
		return err
	})
	require.ErrorContains(t, err, "number of symbols of the size of an int")
	require.Less(t, s.bytes, 24*scatteredSymbols+300<<20, "of 65,536, all over the table")
	require.Less(t, allocated, uint64(10<<20))
	t.Logf("%d bytes allocated", allocated)
}
