package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// maxStructBytes bounds offsets in the structures of the C library; the
// largest, struct rtld_global, has less than 8 KiB.
const maxStructBytes = 1 << 16

// ThreadDB is what a libc.so.6 tells debuggers about its own structures and
// those of its loader: symbols _thread_db_*, for libthread_db
// (nptl_db/structs.def and nptl_db/db_info.c of glibc 2.34 and newer). It is a
// comparable value without references to the file.
type ThreadDB struct {
	// rtldGlobal is the virtual address of a pointer to struct rtld_global.
	rtldGlobal uint64
	// slotinfoList is the offset of _dl_tls_dtv_slotinfo_list in it.
	slotinfoList uint64

	listLength, listNext, listSlots    uint64 // struct dtv_slotinfo_list
	slotBytes, slotGeneration, slotMap uint64 // struct dtv_slotinfo
	mapModule, mapOffset               uint64 // struct link_map
}

// ReadThreadDB reads what a C library says of itself, and compares what it says
// of the DTV with what Location.Address and the BPF programs assume. The error
// is ErrNoThreadDB, ErrLayout, or tells what is wrong with the file.
func ReadThreadDB(f *elffile.File) (ThreadDB, error) {
	var db ThreadDB
	if err := checkDTV(f); err != nil {
		return ThreadDB{}, err
	}
	sym, err := threadDBSymbol(f, "__nptl_rtld_global")
	if err != nil {
		return ThreadDB{}, err
	}
	db.rtldGlobal = sym.Value
	for _, field := range []struct {
		name string
		bits uint32
		at   *uint64
	}{
		{"rtld_global__dl_tls_dtv_slotinfo_list", 64, &db.slotinfoList},
		{"dtv_slotinfo_list_len", 64, &db.listLength},
		{"dtv_slotinfo_list_next", 64, &db.listNext},
		{"dtv_slotinfo_list_slotinfo", 128, &db.listSlots},
		{"dtv_slotinfo_gen", 64, &db.slotGeneration},
		{"dtv_slotinfo_map", 64, &db.slotMap},
		{"link_map_l_tls_modid", 64, &db.mapModule},
		{"link_map_l_tls_offset", 64, &db.mapOffset},
	} {
		if *field.at, err = threadDBOffset(f, field.name, field.bits); err != nil {
			return ThreadDB{}, err
		}
	}
	if db.slotBytes, err = threadDBSize(f, "dtv_slotinfo"); err != nil {
		return ThreadDB{}, err
	}
	if max(db.slotGeneration, db.slotMap)+8 > db.slotBytes {
		return ThreadDB{}, fmt.Errorf("%w: struct dtv_slotinfo of %d bytes", ErrLayout, db.slotBytes)
	}
	return db, nil
}

// checkDTV compares the layout of the DTV with the one that
// Location.Address knows.
func checkDTV(f *elffile.File) error {
	dtvp := uint64(8) // tcbhead_t.dtv
	if f.Machine == elf.EM_AARCH64 {
		// tp points behind struct pthread, from which libthread_db counts.
		size, err := threadDBSize(f, "pthread")
		if err != nil {
			return err
		}
		dtvp = size
	}
	for _, field := range []struct {
		name string
		bits uint32
		want uint64
	}{
		{"pthread_dtvp", 64, dtvp},
		{"dtv_dtv", 128, 0}, // an array from dtv[0] on, of entries this large
		{"dtv_t_pointer_val", 64, 0},
		{"dtv_t_counter", 64, 0},
	} {
		got, err := threadDBOffset(f, field.name, field.bits)
		if err != nil {
			return err
		}
		if got != field.want {
			return fmt.Errorf("%w: _thread_db_%s at %d, not %d", ErrLayout, field.name, got, field.want)
		}
	}
	return nil
}

// threadDBOffset reads a descriptor of a field: uint32_t {bits, count, offset}.
func threadDBOffset(f *elffile.File, name string, bits uint32) (uint64, error) {
	var b [12]byte
	if err := readThreadDB(f, "_thread_db_"+name, b[:]); err != nil {
		return 0, err
	}
	offset := uint64(binary.LittleEndian.Uint32(b[8:]))
	if got := binary.LittleEndian.Uint32(b[:]); got != bits || offset > maxStructBytes {
		return 0, fmt.Errorf("%w: _thread_db_%s of %d bits at %d", ErrLayout, name, got, offset)
	}
	return offset, nil
}

// threadDBSize reads the size of a structure in bytes.
func threadDBSize(f *elffile.File, name string) (uint64, error) {
	var b [4]byte
	if err := readThreadDB(f, "_thread_db_sizeof_"+name, b[:]); err != nil {
		return 0, err
	}
	size := uint64(binary.LittleEndian.Uint32(b[:]))
	if size == 0 || size > maxStructBytes {
		return 0, fmt.Errorf("%w: _thread_db_sizeof_%s of %d bytes", ErrLayout, name, size)
	}
	return size, nil
}

func readThreadDB(f *elffile.File, name string, p []byte) error {
	sym, err := threadDBSymbol(f, name)
	if err != nil {
		return err
	}
	if err := f.ReadVaddr(p, sym.Value); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func threadDBSymbol(f *elffile.File, name string) (elffile.Symbol, error) {
	sym, ok, err := f.DynamicSymbol(name)
	if err == nil && !ok {
		err = fmt.Errorf("%w: no symbol %s", ErrNoThreadDB, name)
	}
	return sym, err
}
