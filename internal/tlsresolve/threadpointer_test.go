package tlsresolve

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"
)

// A variable at the thread pointer, or less than a thread control block behind
// it: what musl makes of the first library on aarch64.
func TestAtThreadPointer(t *testing.T) {
	const slotAt, entry = 0x100, 0x9000
	type slots struct{ initial, now, arg, second uint64 } // second: initial too
	for _, test := range []struct {
		name    string
		model   Model
		machine elf.Machine
		libc    Libc
		value   uint64 // of the symbol
		adjust  int64
		block   uint64 // its place, according to the loader
		slot    slots
		unknown bool // the loader's list cannot be read
		want    int64
		err     error
	}{
		{"first", InitialExec, elf.EM_AARCH64, Musl, 0, 0, 0, slots{}, false, 0, nil},
		{"second", InitialExec, elf.EM_AARCH64, Musl, 8, 0, 0, slots{now: 8}, false, 8, nil},
		{"addend in the file", InitialExec, elf.EM_AARCH64, Musl, 0x18, 0, 0, slots{initial: 0x18, now: 0x18}, false, 0x18, nil},
		{"module's slot", InitialExec, elf.EM_AARCH64, Musl, 0x18, 0x18, 0, slots{}, false, 0x18, nil},
		{"not yet", InitialExec, elf.EM_AARCH64, Musl, 0, 0, 0x20, slots{}, false, 0, ErrNotRelocated},
		{"not yet, not the first variable", InitialExec, elf.EM_AARCH64, Musl, 8, 0, 0, slots{}, false, 0, ErrNotRelocated},
		{"no list yet", InitialExec, elf.EM_AARCH64, Musl, 0, 0, 0, slots{}, true, 0, ErrNotRelocated},
		{"glibc, not yet", InitialExec, elf.EM_AARCH64, Glibc, 0, 0, 0, slots{}, false, 0, ErrNotRelocated},
		{"glibc, in the control block", InitialExec, elf.EM_AARCH64, Glibc, 8, 0, 0, slots{now: 8}, false, 0, ErrImplausible},
		{"x86-64, not yet", InitialExec, elf.EM_X86_64, Musl, 0, 0, 0, slots{}, false, 0, ErrNotRelocated},
		{"negative", InitialExec, elf.EM_AARCH64, Musl, 0, 0, 0, slots{now: ^uint64(7)}, false, 0, ErrImplausible},
		{"descriptor", Descriptor, elf.EM_AARCH64, Musl, 0, 0, 0, slots{now: entry}, false, 0, nil},
		{"descriptor, second", Descriptor, elf.EM_AARCH64, Musl, 8, 0, 0, slots{now: entry, arg: 8}, false, 8, nil},
		{"descriptor, half", Descriptor, elf.EM_AARCH64, Musl, 8, 0, 0, slots{now: entry}, false, 0, ErrNotRelocated},
		{"descriptor, not yet", Descriptor, elf.EM_AARCH64, Musl, 0, 0, 0, slots{}, false, 0, ErrNotRelocated},
		{"descriptor, half, addend in the file", Descriptor, elf.EM_AARCH64, Musl, 0x30, 0, 0x20, slots{now: entry, arg: 0x30, second: 0x30}, false, 0, ErrNotRelocated},
		{"descriptor, addend in the file", Descriptor, elf.EM_AARCH64, Musl, 0x30, 0, 0, slots{now: entry, arg: 0x30, second: 0x30}, false, 0x30, nil},
		{"descriptor, addend and distance", Descriptor, elf.EM_AARCH64, Musl, 0x38, 8, 0, slots{now: entry, arg: 0x30, second: 0x30}, false, 0x38, nil},
		{"descriptor, relocated addend", Descriptor, elf.EM_AARCH64, Glibc, 0x30, 0, 0x20, slots{now: entry, arg: 0x50, second: 0x30}, false, 0x50, nil},
		{"glibc, half, addend in the file", Descriptor, elf.EM_AARCH64, Glibc, 0x30, 0, 0x20, slots{now: entry, arg: 0x30, second: 0x30}, false, 0, ErrNotRelocated},
		{"descriptor, no list yet", Descriptor, elf.EM_AARCH64, Musl, 0, 0, 0, slots{now: entry}, true, 0, ErrNotRelocated},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := libraryPlan(test.machine)
			p.model, p.slot, p.value, p.adjust, p.initial[0] = test.model, slotAt, test.value, test.adjust, test.slot.initial
			p.initial[1] = test.slot.second
			const at = 240
			m := muslProcess(at, p)
			m[linkAt+at+32] = test.block
			m[libBias+slotAt], m[libBias+slotAt+8] = test.slot.now, test.slot.arg
			// The static resolver: ldr x0,[x0,#8]; ret
			m[entry], m[entry+8], m[entry+16], m[entry+24] = 0xd65f03c0_f9400400, 0, 0, 0
			if test.unknown {
				m[debugSlot] = 0
			}
			files := &loaderFiles{debug: []uint64{debugSlot}}
			got, err := p.Resolve(m, libBias, Target{Machine: test.machine, Libc: test.libc, Modules: NewModules(files)})
			require.ErrorIs(t, err, test.err)
			if test.err == nil {
				require.NoError(t, err)
				require.Equal(t, Location{Offset: test.want}, got)
			}
		})
	}
}
