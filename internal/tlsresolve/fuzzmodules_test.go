package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

const shortStart = 0x100

// Where the seeds have what the loader keeps, and what the files say.
const (
	shortDebug  = shortStart        // the program's DT_DEBUG
	shortLink   = shortStart + 0x50 // struct link_map
	shortGlobal = shortStart + 0x90 // __nptl_rtld_global, at load bias 0x80
	shortBias   = 0x20              // of the library
)

type shortFiles struct{}

func (shortFiles) DebugAddresses() []uint64 { return []uint64{shortDebug} }
func (shortFiles) ThreadDB() (ThreadDB, uint64, error) {
	return ThreadDB{
		rtldGlobal: shortGlobal - 0x80, slotinfoList: 0,
		listLength: 0, listNext: 8, listSlots: 16,
		slotBytes: 16, slotGeneration: 0, slotMap: 8,
		mapModule: 0x28, mapOffset: 0x30,
	}, 0x80, nil
}

// loaderReference walks the same structures in the simplest way; it panics with
// the error.
type loaderReference struct {
	m    *fakemem.Window
	arm  bool
	plan Plan
}

func (r *loaderReference) word(addr uint64) uint64 {
	var b [8]byte
	if err := r.m.ReadAt(b[:], addr); err != nil {
		panic(err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

func fail(wrong bool, err error) {
	if wrong {
		panic(err)
	}
}

// link returns the last struct link_map of the library in all lists.
func (r *loaderReference) link() (found uint64) {
	debug, total := r.word(shortDebug), 0
	fail(debug == 0, ErrNotRelocated)
	for lists := 0; debug != 0; lists++ {
		fail(lists == maxNamespaces, ErrImplausible)
		version := uint32(r.word(debug))
		for l := r.word(debug + 8); l != 0; total++ {
			fail(total == maxLinks, ErrImplausible)
			name, next := r.word(l+8), r.word(l+24) // as one read of all four
			_ = name
			if r.word(l) == shortBias && r.word(l+16) == shortBias+r.plan.dynamicVaddr {
				found = l
			}
			l = next
		}
		if version < 2 {
			break
		}
		debug = r.word(debug + 40)
	}
	fail(found == 0, ErrNotRelocated)
	return found
}

func (r *loaderReference) glibc() Location {
	module := r.word(r.link() + 0x28)
	fail(module == 0, ErrNotRelocated)
	fail(module > maxModule, ErrImplausible)
	global := r.word(shortGlobal)
	fail(global == 0, ErrNotRelocated)
	part, first := r.word(global), uint64(0)
	for n := 0; ; n++ {
		fail(n == maxSlotinfoLists, ErrImplausible)
		fail(part == 0, ErrNotRelocated)
		if length := r.word(part); module-first >= length {
			first, part = first+length, r.word(part+8)
			continue
		}
		slot := part + 16 + 16*(module-first)
		owner, generation := r.word(slot+8), r.word(slot)
		fail(owner == 0, ErrNotRelocated)
		id, offset := r.word(owner+0x28), int64(r.word(owner+0x30))
		fail(id != module, ErrNotRelocated)
		switch value := int64(r.plan.value); {
		case offset == 0 || offset == -1:
			return Location{record.TLSDTVGlibc, value, module, generation}
		case r.arm:
			fail(offset+value < 16 || offset+value >= 1<<32, ErrImplausible)
			return Location{Offset: offset + value}
		default:
			fail(value-offset >= 0 || value-offset <= -1<<32, ErrImplausible)
			return Location{Offset: value - offset}
		}
	}
}

func (r *loaderReference) musl() Location {
	dso := r.link()
	bytes := uint64(512)
	if r.m.ReadAt(make([]byte, bytes), dso) != nil {
		bytes = min(bytes, 4096-dso%4096)
		fail(r.m.ReadAt(make([]byte, bytes), dso) != nil, fakemem.ErrUnmapped)
	}
	i := r.plan.image
	for at := dso; at+48 <= dso+bytes; at += 8 {
		size := r.word(at + 16)
		if r.word(at) != shortBias+i.vaddr || r.word(at+8) != i.filesz || r.word(at+24) != i.align || size < i.memsz || size-i.memsz >= i.align {
			continue
		}
		module := r.word(at + 40)
		fail(module == 0, ErrNotRelocated)
		fail(module > maxModule, ErrImplausible)
		return Location{Kind: record.TLSDTVMusl, Offset: int64(r.plan.value), Module: module}
	}
	panic(ErrNoRelocation)
}

func (r *loaderReference) resolve(libc Libc) (l Location, err error) {
	defer func() {
		if e := recover(); e != nil {
			l, err = Location{}, e.(error)
		}
	}()
	if libc == Musl {
		return r.musl(), nil
	}
	return r.glibc(), nil
}

// FuzzModules holds the walks of the loader's lists and tables against the
// reference, in hostile memory. [0] bit 0 is the machine, bit 1 the C library;
// the rest is the memory.
func FuzzModules(f *testing.F) {
	seed := func(kind byte, words ...uint64) []byte {
		b := []byte{kind}
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	const dynamic = ^uint64(0)
	process := func(tlsOffset uint64) []uint64 {
		return []uint64{
			0x110, 0, 2, shortLink, 0, 0, 0, 0, 0, 0, // DT_DEBUG, struct r_debug of version 2 at 0x110
			shortBias, 0, shortBias + libDynamic, 0, 0, 3, tlsOffset, 0, // struct link_map at 0x150
			0x1a0, 0, 0x1b0, 0, // __nptl_rtld_global, struct rtld_global at 0x1a0
			2, 0x1e0, 1, 0, 1, 0, // ids 0 and 1 at 0x1b0
			2, 0, 1, 0, 9, shortLink, // ids 2 and 3 at 0x1e0
		}
	}
	musl := append(process(0), make([]uint64, 64)...)
	copy(musl[18:], []uint64{0, shortBias + 0x2d00, 0x10, 0x20, 16, 0x100, 3})
	seeds := [][]byte{seed(0, process(0x80)...), seed(0, process(0)...), seed(1, process(dynamic)...), seed(1, process(0x80)...), seed(2, musl...), seed(3, musl...)}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) == 0 {
			return
		}
		machine, arm, libc := elf.EM_X86_64, data[0]&1 != 0, Glibc
		if arm {
			machine = elf.EM_AARCH64
		}
		if data[0]&2 != 0 {
			libc = Musl
		}
		m := &fakemem.Window{Start: shortStart, Bytes: data[1:]}
		plan := libraryPlan(machine)
		got, err := plan.Resolve(m, shortBias, Target{Machine: machine, Libc: libc, Modules: NewModules(shortFiles{})})
		if m.Reads > 3*maxNamespaces+maxLinks+2*maxSlotinfoLists+16 {
			t.Fatalf("%d reads", m.Reads)
		}
		r := loaderReference{m, arm, plan}
		want, wantErr := r.resolve(libc)
		if got != want || !errors.Is(err, wantErr) {
			t.Fatalf("%+v, %v, want %+v, %v", got, err, want, wantErr)
		}
	})
}
