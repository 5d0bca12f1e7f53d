package tlsresolve

import (
	"debug/elf"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// Where the dynamic loader of these tests keeps things.
const (
	debugSlot  = 0x1000 // the program's DT_DEBUG
	debugAt    = 0x2000 // struct r_debug
	libcBias   = 0x10_0000
	globalAt   = 0x3000 // struct rtld_global
	listAt     = 0x4000 // struct dtv_slotinfo_list
	linkAt     = 0x5000 // struct link_map of the library
	libBias    = 0x70_0000_0000
	libDynamic = 0x2e00
	libModule  = 3
	libValue   = 0x18
)

// db has offsets as no glibc has them.
var db = ThreadDB{
	rtldGlobal: 0x88, slotinfoList: 0x40,
	listLength: 8, listNext: 0, listSlots: 0x20,
	slotBytes: 24, slotGeneration: 16, slotMap: 8,
	mapModule: 0x60, mapOffset: 0x78,
}

// loaderFiles is what the process's files say, and how often they were asked.
type loaderFiles struct {
	debug []uint64
	err   error
	asked int
}

func (f *loaderFiles) DebugAddresses() []uint64 { f.asked++; return f.debug }
func (f *loaderFiles) ThreadDB() (ThreadDB, uint64, error) {
	f.asked++
	return db, libcBias, f.err
}

// glibcProcess is a process with one library, of the given l_tls_offset.
func glibcProcess(tlsOffset, generation uint64) words {
	m := words{
		debugSlot: debugAt, debugAt: 1, debugAt + 8: linkAt,
		linkAt: libBias, linkAt + 8: 0, linkAt + 16: libBias + libDynamic, linkAt + 24: 0,
		linkAt + 0x60: libModule, linkAt + 0x78: tlsOffset,
		libcBias + 0x88: globalAt, globalAt + 0x40: listAt,
		// Two parts: of ids 0 and 1, and of 2 and 3.
		listAt: listAt + 0x800, listAt + 8: 2, listAt + 0x800: 0, listAt + 0x808: 2,
	}
	slot := uint64(listAt + 0x800 + 0x20 + 24)
	m[slot+8], m[slot+16] = linkAt, generation
	return m
}

func libraryPlan(machine elf.Machine) Plan {
	return Plan{
		machine: machine, model: ModuleOnly, value: libValue, dynamicVaddr: libDynamic,
		image: tlsImage{vaddr: 0x2d00, filesz: 0x10, memsz: 0x20, align: 16},
	}
}

func TestModuleOnlyGlibc(t *testing.T) {
	const unset, forced = 0, ^uint64(0)
	dtv := Location{record.TLSDTVGlibc, libValue, libModule, 9}
	slot := uint64(listAt + 0x800 + 0x20 + 24)
	tests := []struct {
		name      string
		machine   elf.Machine
		tlsOffset uint64
		change    words
		want      Location
		err       error
	}{
		{"static", elf.EM_X86_64, 0x80, nil, Location{Offset: -0x80 + libValue}, nil},
		{"static aarch64", elf.EM_AARCH64, 0x80, nil, Location{Offset: 0x80 + libValue}, nil},
		{"undecided", elf.EM_X86_64, unset, nil, dtv, nil},
		{"undecided aarch64", elf.EM_AARCH64, unset, nil, dtv, nil},
		{"dynamic", elf.EM_X86_64, forced, nil, dtv, nil},
		{"dynamic aarch64", elf.EM_AARCH64, forced, nil, dtv, nil},
		{"static nonsense", elf.EM_X86_64, 1 << 40, nil, Location{}, ErrImplausible},
		{"static inside the TCB", elf.EM_X86_64, 8, nil, Location{}, ErrImplausible},
		{"static aarch64 nonsense", elf.EM_AARCH64, 1 << 40, nil, Location{}, ErrImplausible},

		{"loader not there yet", elf.EM_X86_64, forced, words{debugSlot: 0}, Location{}, ErrNotRelocated},
		{"no library yet", elf.EM_X86_64, forced, words{debugAt + 8: 0}, Location{}, ErrNotRelocated},
		{"other library", elf.EM_X86_64, forced, words{linkAt: libBias + 0x1000}, Location{}, ErrNotRelocated},
		{"other dynamic section", elf.EM_X86_64, forced, words{linkAt + 16: libBias}, Location{}, ErrNotRelocated},
		{"no module id yet", elf.EM_X86_64, forced, words{linkAt + 0x60: 0}, Location{}, ErrNotRelocated},
		{"absurd module id", elf.EM_X86_64, forced, words{linkAt + 0x60: maxModule + 1}, Location{}, ErrImplausible},
		{"id of a part not there yet", elf.EM_X86_64, forced, words{linkAt + 0x60: 4}, Location{}, ErrNotRelocated},
		{"not registered", elf.EM_X86_64, forced, words{slot + 8: 0}, Location{}, ErrNotRelocated},
		{"another registered", elf.EM_X86_64, forced, words{slot + 8: 0x6000, 0x6060: 7, 0x6078: 0}, Location{}, ErrNotRelocated},
		{"no rtld_global yet", elf.EM_X86_64, forced, words{libcBias + 0x88: 0}, Location{}, ErrNotRelocated},
		{"no table yet", elf.EM_X86_64, forced, words{globalAt + 0x40: 0}, Location{}, ErrNotRelocated},
		{"empty parts in a circle", elf.EM_X86_64, forced, words{listAt: listAt, listAt + 8: 0}, Location{}, ErrImplausible},
		{"table not mapped", elf.EM_X86_64, forced, words{listAt: 0x9_0000}, Location{}, fakemem.ErrUnmapped},
		{"list in a circle", elf.EM_X86_64, forced, words{linkAt + 24: linkAt}, Location{}, ErrImplausible},
		{"list not mapped", elf.EM_X86_64, forced, words{linkAt + 24: 0x9_0000}, Location{}, fakemem.ErrUnmapped},
		{"r_debug not mapped", elf.EM_X86_64, forced, words{debugSlot: 0x9_0000}, Location{}, fakemem.ErrUnmapped},
		{"r_debug at the end", elf.EM_X86_64, forced, words{debugSlot: ^uint64(7)}, Location{}, fakemem.ErrUnmapped},
		{"namespaces in a circle", elf.EM_X86_64, forced, words{debugAt: 2, debugAt + 8: 0, debugAt + 40: debugAt}, Location{}, ErrImplausible},
		{"second namespace", elf.EM_X86_64, forced, words{
			debugAt: 2, debugAt + 8: 0, debugAt + 40: 0x6000, 0x6000: 2, 0x6008: linkAt, 0x6028: 0,
		}, dtv, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := glibcProcess(test.tlsOffset, 9)
			for addr, w := range test.change {
				m[addr] = w
			}
			env := Target{Machine: test.machine, Libc: Glibc, Modules: NewModules(&loaderFiles{debug: []uint64{debugSlot}})}
			got, err := libraryPlan(test.machine).Resolve(m, libBias, env)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
				require.Zero(t, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

// The module of a slot, or of a descriptor, gets the generation of the loader's
// table: a descriptor may have an older one. Nothing of that is read for
// locations that do not depend on it, or for other C libraries.
func TestGeneration(t *testing.T) {
	const slotAt, entry, index = 0x7000, 0x7100, 0x7200
	m := glibcProcess(^uint64(0), 9)
	m[slotAt], m[slotAt+8] = libModule, 0x18
	gd := Plan{machine: elf.EM_X86_64, model: GeneralDynamic, slot: slotAt, value: 0x18}
	desc := Plan{machine: elf.EM_X86_64, model: Descriptor, slot: slotAt + 0x10}
	m[slotAt+0x10], m[slotAt+0x18] = entry, index
	m[index], m[index+8] = libModule, 0x18
	m.code(entry, "\x64\x48\x8b\x34\x25\x08\x00\x00\x00")
	static := Plan{machine: elf.EM_X86_64, model: InitialExec, slot: slotAt + 0x20}
	m[slotAt+0x20] = ^uint64(15)

	for _, test := range []struct {
		name       string
		plan       Plan
		libc       Libc
		inIndex    uint64 // generation in the descriptor
		err        error  // of the C library
		want       Location
		wantErr    error
		wantAsking int
	}{
		{"slot", gd, Glibc, 0, nil, Location{record.TLSDTVGlibc, 0x18, libModule, 9}, nil, 1},
		{"slot, old C library", gd, Glibc, 0, ErrNoThreadDB, Location{record.TLSDTVGlibc, 0x18, libModule, 0}, nil, 1},
		{"slot, other layout", gd, Glibc, 0, ErrLayout, Location{}, ErrLayout, 1},
		{"slot, unreadable C library", gd, Glibc, 0, fakemem.ErrUnmapped, Location{}, fakemem.ErrUnmapped, 1},
		{"slot, musl", gd, Musl, 0, nil, Location{record.TLSDTVMusl, 0x18, libModule, 0}, nil, 0},
		{"descriptor older", desc, Glibc, 4, nil, Location{record.TLSDTVGlibc, 0x18, libModule, 9}, nil, 1},
		{"descriptor newer", desc, Glibc, 11, nil, Location{record.TLSDTVGlibc, 0x18, libModule, 11}, nil, 1},
		{"descriptor, old C library", desc, Glibc, 4, ErrNoThreadDB, Location{record.TLSDTVGlibc, 0x18, libModule, 4}, nil, 1},
		{"descriptor, other layout", desc, Glibc, 4, ErrLayout, Location{}, ErrLayout, 1},
		{"static", static, Glibc, 0, ErrLayout, Location{Offset: -16}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m[index+16] = test.inIndex
			files := &loaderFiles{err: test.err}
			env := Target{Machine: elf.EM_X86_64, Libc: test.libc, Modules: NewModules(files)}
			for range 2 { // a second source asks for nothing anew
				got, err := test.plan.Resolve(m, 0, env)
				require.ErrorIs(t, err, test.wantErr)
				require.Equal(t, test.want, got)
			}
			require.Equal(t, test.wantAsking, files.asked)
		})
	}
	// An id that is just being taken over.
	m[linkAt+0x60] = 2
	_, err := gd.Resolve(m, 0, Target{Machine: elf.EM_X86_64, Libc: Glibc, Modules: NewModules(&loaderFiles{})})
	require.ErrorIs(t, err, ErrNotRelocated)
	// In static TLS the DTV is not needed.
	m = glibcProcess(0x80, 9)
	m[slotAt], m[slotAt+8] = libModule, 0x18
	got, err := gd.Resolve(m, 0, Target{Machine: elf.EM_X86_64, Libc: Glibc, Modules: NewModules(&loaderFiles{})})
	require.NoError(t, err)
	require.Equal(t, Location{Offset: -0x80 + 0x18}, got)
}

// muslProcess is a process with one library, whose struct dso has its TLS module
// at some offset.
func muslProcess(at uint64, p Plan) words {
	m := words{
		debugSlot: debugAt, debugAt: 1, debugAt + 8: linkAt,
		linkAt: libBias, linkAt + 16: libBias + libDynamic,
	}
	for i := uint64(0); i < 1024; i += 8 {
		m[linkAt+i] += 0
	}
	m[linkAt+at], m[linkAt+at+8] = libBias+p.image.vaddr, p.image.filesz
	m[linkAt+at+16], m[linkAt+at+24], m[linkAt+at+32] = p.image.memsz, p.image.align, 0x100
	m[linkAt+at+40] = libModule
	return m
}

func TestModuleOnlyMusl(t *testing.T) {
	want := Location{record.TLSDTVMusl, libValue, libModule, 0}
	const at = 240
	for _, test := range []struct {
		name   string
		at     uint64
		change words
		err    error
	}{
		{"as it is", at, nil, nil},
		{"elsewhere", 0x100, nil, nil},
		{"at the end of the window", muslWindow - 48, nil, nil},
		{"behind the window", muslWindow - 40, nil, ErrNoRelocation},
		{"rounded size", at, words{linkAt + at + 16: 0x2f}, nil},
		{"larger", at, words{linkAt + at + 16: 0x30}, ErrNoRelocation},
		{"smaller", at, words{linkAt + at + 16: 0x1f}, ErrNoRelocation},
		{"other image", at, words{linkAt + at: libBias}, ErrNoRelocation},
		{"other length", at, words{linkAt + at + 8: 8}, ErrNoRelocation},
		{"other alignment", at, words{linkAt + at + 24: 8}, ErrNoRelocation},
		{"no id yet", at, words{linkAt + at + 40: 0}, ErrNotRelocated},
		{"absurd id", at, words{linkAt + at + 40: ^uint64(0)}, ErrImplausible},
	} {
		for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
			p := libraryPlan(machine)
			m := muslProcess(test.at, p)
			for addr, w := range test.change {
				m[addr] = w
			}
			files := &loaderFiles{debug: []uint64{debugSlot}, err: errors.New("glibc is not asked for")}
			got, err := p.Resolve(m, libBias, Target{Machine: machine, Libc: Musl, Modules: NewModules(files)})
			require.ErrorIs(t, err, test.err, test.name)
			if test.err == nil {
				require.NoError(t, err, test.name)
				require.Equal(t, want, got, test.name)
			}
		}
	}
	p := libraryPlan(elf.EM_X86_64)
	_, err := p.Resolve(words{}, libBias, Target{Machine: elf.EM_X86_64, Modules: NewModules(&loaderFiles{debug: []uint64{debugSlot}})})
	require.ErrorIs(t, err, ErrUnknownLibc)
}

// A struct dso can end before the window does, at the end of the memory.
func TestMuslWindowAtPageEnd(t *testing.T) {
	p := libraryPlan(elf.EM_X86_64)
	m := muslProcess(48, p)
	moved := words{}
	const dso = 0x8000 - 128 // of 128 bytes
	for i := uint64(0); i < 128; i += 8 {
		moved[dso+i] = m[linkAt+i]
	}
	tls, err := p.muslModule(moved, dso, libBias)
	require.NoError(t, err)
	require.Equal(t, linkTLS{libModule, 0x100}, tls)
	_, err = p.muslModule(words{}, dso, libBias)
	require.ErrorIs(t, err, fakemem.ErrUnmapped)
}

// echo is memory that holds one word everywhere, and counts.
type echo struct {
	word  uint64
	reads int
}

func (m *echo) ReadAt(p []byte, _ uint64) error {
	m.reads++
	for i := range p {
		p[i] = byte(m.word >> (8 * (i & 7)))
	}
	return nil
}

// Whatever a process has in its memory, looking for modules ends.
func TestModulesBounded(t *testing.T) {
	for _, libc := range []Libc{Glibc, Musl} {
		for _, model := range []Model{ModuleOnly, GeneralDynamic} {
			for _, word := range []uint64{0, 1, 2, 3, 0x4000, maxModule, maxModule + 1, 1 << 63, ^uint64(0)} {
				p := libraryPlan(elf.EM_X86_64)
				p.model, p.slot, p.offsetSlot = model, 0x100, true
				mem := &echo{word: word}
				files := &loaderFiles{debug: []uint64{debugSlot}}
				env := Target{Machine: elf.EM_X86_64, Libc: libc, Modules: NewModules(files)}
				env.Definitions = []Definition{{p, 0}, {p, 0x4000}}
				for range 4 {
					_, _ = p.Resolve(mem, 0, env)
				}
				require.LessOrEqual(t, mem.reads, maxLinks+2*maxNamespaces+4*(2*maxSlotinfoLists+16), "%v %v %#x", libc, model, word)
			}
		}
	}
}
