package tlsresolve_test

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

func TestAddress(t *testing.T) {
	const x86, arm = elf.EM_X86_64, elf.EM_AARCH64
	const kindGlibc, kindMusl = record.TLSDTVGlibc, record.TLSDTVMusl
	glibc := func(block, slots, generation uint64) memory {
		m := memory{}
		m.put(pointer, vector, vector) // {dtv} on aarch64, {self, dtv} on x86-64
		m.put(vector-16, slots, 0, generation, 0)
		m.put(vector+16*module, block, 0)
		return m
	}
	musl := func(block, count uint64) memory {
		m := memory{}
		m.put(pointer-8, vector, 0, vector)
		m.put(vector, count)
		m.put(vector+8*module, block)
		return m
	}
	noDTV := memory{}
	noDTV.put(pointer-8, 0, 0, 0)

	tests := []struct {
		name     string
		location tlsresolve.Location
		machine  elf.Machine
		memory   memory
		tp       uint64
		want     uint64
		err      error
	}{
		{"static", tlsresolve.Location{Offset: -152}, x86, nil, pointer, pointer - 152, nil},
		{"static aarch64", tlsresolve.Location{Offset: 160}, arm, nil, pointer, pointer + 160, nil},
		{"no thread pointer", tlsresolve.Location{Offset: 160}, arm, nil, 0, 0, tlsresolve.ErrNoThreadPointer},
		{"glibc", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, glibc(blockStart, 64, 1), pointer, blockStart + 24, nil},
		{"glibc aarch64", tlsresolve.Location{kindGlibc, 24, module, 0}, arm, glibc(blockStart, 64, 1), pointer, blockStart + 24, nil},
		{"glibc last slot", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, glibc(blockStart, module, 1), pointer, blockStart + 24, nil},
		{"glibc few slots", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, glibc(blockStart, module-1, 1), pointer, 0, tlsresolve.ErrNotAllocated},
		{"glibc never used", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, glibc(0, 64, 1), pointer, 0, tlsresolve.ErrNotAllocated},
		{"glibc unallocated", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, glibc(^uint64(0), 64, 1), pointer, 0, tlsresolve.ErrNotAllocated},
		{"glibc generation reached", tlsresolve.Location{kindGlibc, 24, module, 7}, x86, glibc(blockStart, 64, 7), pointer, blockStart + 24, nil},
		{"glibc generation older", tlsresolve.Location{kindGlibc, 24, module, 8}, x86, glibc(blockStart, 64, 7), pointer, 0, tlsresolve.ErrStaleModule},
		{"glibc module 0", tlsresolve.Location{kindGlibc, 24, 0, 0}, x86, glibc(blockStart, 64, 7), pointer, 0, tlsresolve.ErrNotAllocated},
		{"glibc absurd module", tlsresolve.Location{kindGlibc, 24, 1 << 60, 0}, x86, glibc(blockStart, ^uint64(0), 7), pointer, 0, tlsresolve.ErrNotAllocated},
		{"glibc no DTV", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, noDTV, pointer, 0, tlsresolve.ErrNotAllocated},
		{"glibc fault", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, memory{}, pointer, 0, fakemem.ErrUnmapped},
		{"glibc DTV fault", tlsresolve.Location{kindGlibc, 24, module, 0}, x86, memory{pointer + 8: vector}, pointer, 0, fakemem.ErrUnmapped},
		{"musl", tlsresolve.Location{kindMusl, 24, module, 0}, x86, musl(blockStart, 64), pointer, blockStart + 24, nil},
		{"musl aarch64", tlsresolve.Location{kindMusl, 24, module, 0}, arm, musl(blockStart, 64), pointer, blockStart + 24, nil},
		{"musl last slot", tlsresolve.Location{kindMusl, 24, module, 0}, x86, musl(blockStart, module), pointer, blockStart + 24, nil},
		{"musl few slots", tlsresolve.Location{kindMusl, 24, module, 0}, x86, musl(blockStart, module-1), pointer, 0, tlsresolve.ErrNotAllocated},
		{"musl empty", tlsresolve.Location{kindMusl, 24, module, 0}, arm, musl(0, 64), pointer, 0, tlsresolve.ErrNotAllocated},
		{"musl no DTV", tlsresolve.Location{kindMusl, 24, module, 0}, arm, noDTV, pointer, 0, tlsresolve.ErrNotAllocated},
		{"musl fault", tlsresolve.Location{kindMusl, 24, module, 0}, arm, memory{pointer - 8: vector}, pointer, 0, fakemem.ErrUnmapped},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.location.Address(test.memory, test.machine, test.tp)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, got)
		})
	}
}
