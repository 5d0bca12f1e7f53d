package tlsresolve

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// glibcs are the C libraries of the host and of the cross compiler.
var glibcs = map[elf.Machine]string{
	elf.EM_X86_64:  "/lib/x86_64-linux-gnu/libc.so.6",
	elf.EM_AARCH64: "/usr/aarch64-linux-gnu/lib/libc.so.6",
}

func openBytes(t *testing.T, b []byte) *elffile.File {
	t.Helper()
	f, err := elffile.New(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return f
}

// A glibc says of its DTV what we assume, on both machines.
func TestReadThreadDB(t *testing.T) {
	for machine, path := range glibcs {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		f := openBytes(t, b)
		require.Equal(t, machine, f.Machine)
		db, err := ReadThreadDB(f)
		require.NoError(t, err)
		require.NotZero(t, db.rtldGlobal)
		require.NotZero(t, db.slotinfoList)
		require.EqualValues(t, 16, db.slotBytes)
		require.NotEqual(t, db.mapModule, db.mapOffset)
		require.NotZero(t, db.mapModule)
	}
}

func TestReadThreadDBMissing(t *testing.T) {
	// musl, and a library of any kind.
	for _, path := range []string{"/lib/ld-musl-x86_64.so.1", corpus.Library(t, corpus.GCC)} {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = ReadThreadDB(openBytes(t, b))
		require.ErrorIs(t, err, ErrNoThreadDB)
	}
}

// patchSymbol writes 32-bit words where a symbol of the file stands.
func patchSymbol(t *testing.T, b []byte, name string, words ...uint32) {
	t.Helper()
	f := openBytes(t, b)
	sym, ok, err := f.DynamicSymbol(name)
	require.NoError(t, err)
	require.True(t, ok, name)
	for s := range f.Loads() {
		if sym.Value >= s.Vaddr && sym.Value < s.Vaddr+s.Filesz {
			for i, w := range words {
				binary.LittleEndian.PutUint32(b[s.Offset+sym.Value-s.Vaddr+4*uint64(i):], w)
			}
			return
		}
	}
	require.Fail(t, "not in the file", name)
}

// Every disagreement with what we know of the DTV is told. Descriptors with
// the same contents are one object in the file, so the patches differ from it
// in what the field is compared with.
func TestReadThreadDBLayout(t *testing.T) {
	tests := []struct {
		name  string
		words []uint32
	}{
		{"_thread_db_pthread_dtvp", []uint32{64, 1, 24}},
		{"_thread_db_pthread_dtvp", []uint32{32, 1, 8}},
		{"_thread_db_dtv_dtv", []uint32{64, 1 << 27, 0}}, // entries like musl's
		{"_thread_db_dtv_dtv", []uint32{128, 1 << 27, 16}},
		{"_thread_db_dtv_t_pointer_val", []uint32{64, 1, 8}},
		{"_thread_db_dtv_t_counter", []uint32{32, 1, 0}},
		{"_thread_db_link_map_l_tls_modid", []uint32{32, 1, 1152}},
		{"_thread_db_link_map_l_tls_modid", []uint32{64, 1, maxStructBytes + 1}},
		{"_thread_db_link_map_l_tls_offset", []uint32{64, 1, ^uint32(0)}},
		{"_thread_db_dtv_slotinfo_list_slotinfo", []uint32{64, 0, 16}},
		{"_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", []uint32{0, 0, 0}},
		{"_thread_db_sizeof_dtv_slotinfo", []uint32{8}},
		{"_thread_db_sizeof_dtv_slotinfo", []uint32{0}},
	}
	for machine, path := range glibcs {
		original, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, test := range tests {
			b := bytes.Clone(original)
			patchSymbol(t, b, test.name, test.words...)
			_, err = ReadThreadDB(openBytes(t, b))
			require.ErrorIs(t, err, ErrLayout, "%v %s %v", machine, test.name, test.words)
		}
	}
	// aarch64: the thread pointer is the end of struct pthread.
	b, err := os.ReadFile(glibcs[elf.EM_AARCH64])
	require.NoError(t, err)
	patchSymbol(t, b, "_thread_db_sizeof_pthread", 1840)
	_, err = ReadThreadDB(openBytes(t, b))
	require.ErrorIs(t, err, ErrLayout)
}
