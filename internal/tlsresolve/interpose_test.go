package tlsresolve

import (
	"debug/elf"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A slot whose offset is what the file has there, 0, while the loader may have
// bound it to the library's own definition or to the program's.
func TestInterposedAtStart(t *testing.T) {
	const slotAt, program, programBias = 0x100, 1, 0x55_0000_0000
	for _, libc := range []Libc{Glibc, Musl} {
		for _, test := range []struct {
			name           string
			own, other     uint64 // offsets of the two definitions
			module, offset uint64 // in the slot
			others         bool   // the program's definition is known
			known          bool   // and the loader's list can be read
			want           bool
		}{
			{"own, written", 0x18, 0, libModule, 0x18, true, true, true},
			{"own, not yet", 0x18, 0, libModule, 0, true, true, false},
			{"own at the start", 0, 0x18, libModule, 0, true, true, true},
			{"own at the start, alone", 0, 0x18, libModule, 0, false, true, true},
			{"program's at the start", 0x18, 0, program, 0, true, true, true},
			{"program's, not yet", 0, 0x18, program, 0, true, true, false},
			{"program's, written", 0, 0x18, program, 0x18, true, true, true},
			{"both at the start", 0, 0, program, 0, true, false, true},
			{"both behind", 0x18, 0x20, program, 0, true, true, false},
			{"module of neither", 0x18, 0, 9, 0, true, true, false},
			{"program's at the start, list unknown", 0x18, 0, program, 0, true, false, false},
			{"program's at the start, not known", 0x18, 0, program, 0, false, true, false},
		} {
			t.Run(libc.String()+"/"+test.name, func(t *testing.T) {
				p := libraryPlan(elf.EM_X86_64)
				p.model, p.slot, p.offsetSlot, p.value = GeneralDynamic, slotAt, true, test.own
				exe := libraryPlan(elf.EM_X86_64)
				exe.model, exe.value, exe.dynamicVaddr = LocalExec, test.other, 0x3e00
				m := glibcProcess(0, 9)
				if libc == Musl {
					m = muslProcess(240, p)
				}
				addProgram(m, exe, programBias, program)
				m[libBias+slotAt], m[libBias+slotAt+8] = test.module, test.offset

				env := Target{Machine: elf.EM_X86_64, Libc: libc}
				if test.known {
					env.Modules = NewModules(&loaderFiles{debug: []uint64{debugSlot}})
				}
				if test.others {
					env.Definitions = []Definition{{exe, programBias}, {p, libBias}}
				}
				got, err := p.Resolve(m, libBias, env)
				if !test.want {
					require.ErrorIs(t, err, ErrNotRelocated)
					return
				}
				require.NoError(t, err)
				require.EqualValues(t, test.offset, got.Offset)
				require.Equal(t, test.module, got.Module)
			})
		}
	}
}

// Of glibc before 2.34 the modules of definitions cannot be known: that a library has its own variable must not be taken
// back where another one is loaded that has one, too.
func TestInterposedUnknownModules(t *testing.T) {
	const slotAt, otherBias = 0x100, 0x55_0000_0000
	for _, test := range []struct {
		name       string
		own, other uint64
		offset     uint64 // in the slot
		err        error
		want       error
	}{
		{"own at the start", 0, 0x18, 0, ErrNoThreadDB, ErrUnsure},
		{"the other's at the start", 0x18, 0, 0, ErrNoThreadDB, ErrUnsure},
		{"both behind", 0x18, 0x20, 0, ErrNoThreadDB, ErrNotRelocated},
		{"written", 0, 0x18, 0x18, ErrNoThreadDB, nil},
		{"cannot be read now", 0, 0x18, 0, ErrLayout, ErrNotRelocated},
	} {
		p, other := libraryPlan(elf.EM_X86_64), libraryPlan(elf.EM_X86_64)
		p.model, p.slot, p.offsetSlot, p.value = GeneralDynamic, slotAt, true, test.own
		other.model, other.value, other.dynamicVaddr = GeneralDynamic, test.other, 0x3e00
		m := glibcProcess(0, 9)
		m[libBias+slotAt], m[libBias+slotAt+8] = libModule, test.offset
		got, err := p.Resolve(m, libBias, Target{
			Machine: elf.EM_X86_64, Libc: Glibc, Definitions: []Definition{{p, libBias}, {other, otherBias}},
			Modules: NewModules(&loaderFiles{debug: []uint64{debugSlot}, err: test.err}),
		})
		require.ErrorIs(t, err, test.want, test.name)
		if !errors.Is(err, ErrNotRelocated) {
			require.Equal(t, Location{Kind: record.TLSDTVGlibc, Module: libModule, Offset: int64(test.offset)}, got, test.name)
		}
	}
}

// addProgram puts the program before the library in the loader's list and table.
func addProgram(m words, p Plan, bias, module uint64) {
	const at = 0x6000
	for i := uint64(0); i < 1024; i += 8 {
		m[at+i] = 0
	}
	m[debugAt+8], m[at], m[at+16], m[at+24] = at, bias, bias+p.dynamicVaddr, linkAt
	if _, glibc := m[listAt]; glibc {
		m[at+db.mapModule] = module
		slot := listAt + db.listSlots + module*db.slotBytes
		m[slot+db.slotMap], m[slot+db.slotGeneration] = at, 0
		return
	}
	m[at+240], m[at+248], m[at+256], m[at+264] = bias+p.image.vaddr, p.image.filesz, p.image.memsz, p.image.align
	m[at+280] = module
}
