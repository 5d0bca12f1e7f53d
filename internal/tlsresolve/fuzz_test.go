package tlsresolve_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// anywhere is memory that answers every address from a short byte string.
type anywhere []byte

func (m anywhere) ReadAt(p []byte, addr uint64) error {
	if len(m) == 0 {
		return errFault
	}
	for i := range p {
		p[i] = m[(addr+uint64(i))%uint64(len(m))]
	}
	return nil
}

// FuzzResolve gives Plan, Resolve and Address a hostile file in a hostile
// process.
func FuzzResolve(f *testing.F) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		for _, args := range [][]string{{"-DPAD=40"}, {"-DVISIBILITY=hidden"}, {"-ftls-model=initial-exec"}, {"-DSIBLING"}} {
			b := corpus.SmallLibrary(f, compiler, args...)
			f.Add(b, make([]byte, 24), uint64(loadBias), uint8(tlsresolve.Glibc))
			f.Add(b, binary.LittleEndian.AppendUint64(nil, 3), uint64(0), uint8(tlsresolve.Musl))
			f.Add(b, []byte(x86Static+x86Glibc), uint64(0x1000), uint8(tlsresolve.Glibc))
			f.Add(b, []byte(armStatic+armDynamic), uint64(0x1000), uint8(tlsresolve.UnknownLibc))
		}
	}
	f.Fuzz(func(t *testing.T, file, mem []byte, bias uint64, libc uint8) {
		e, err := elffile.New(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		plan, err := tlsresolve.NewPlan(e, symbol)
		if err != nil {
			return
		}
		target := tlsresolve.Target{Machine: e.Machine, Libc: tlsresolve.Libc(libc)}
		location, err := plan.Resolve(anywhere(mem), bias, target)
		if err != nil {
			require.Zero(t, location)
			return
		}
		checkLocation(t, plan, e.Machine, location)
		if _, err = location.Address(anywhere(mem), e.Machine, bias); err != nil {
			known := errors.Is(err, errFault) || errors.Is(err, tlsresolve.ErrNoThreadPointer) ||
				errors.Is(err, tlsresolve.ErrNotAllocated) || errors.Is(err, tlsresolve.ErrStaleModule)
			require.True(t, known, "%v", err)
		}
	})
}

// checkLocation holds a location against what any loader could have made. The
// offset of local-exec comes from the file alone, which may say anything.
func checkLocation(t *testing.T, plan tlsresolve.Plan, machine elf.Machine, l tlsresolve.Location) {
	switch {
	case l.Kind != tlsresolve.Static:
		require.NotZero(t, l.Module)
		require.GreaterOrEqual(t, l.Offset, int64(0))
	case plan.Model() == tlsresolve.LocalExec:
	case machine == elf.EM_X86_64:
		require.Negative(t, l.Offset)
	default:
		require.GreaterOrEqual(t, l.Offset, int64(16))
	}
}
