package tlsresolve

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
)

// A slot of two words is known as the file has it, both of them: the loader has not been
// there as long as memory holds the same.
func TestInitialWords(t *testing.T) {
	for _, compiler := range []string{corpus.GCC, corpus.AArch64GCC} {
		dialects := []string{"-mtls-dialect=gnu", "-mtls-dialect=gnu2"}
		if compiler == corpus.AArch64GCC {
			dialects = []string{"-mtls-dialect=trad", "-mtls-dialect=desc"}
		}
		for i, model := range []Model{GeneralDynamic, Descriptor} {
			b, err := os.ReadFile(corpus.Library(t, compiler, dialects[i]))
			require.NoError(t, err)
			f := openBytes(t, b)
			p, err := NewPlan(f, "custom_labels_current_set")
			require.NoError(t, err)
			require.Equal(t, model, p.model)
			off, _, ok := f.FileRange(p.slot)
			require.True(t, ok)
			const first, second = 0x1111, 0x30
			binary.LittleEndian.PutUint64(b[off:], first)
			binary.LittleEndian.PutUint64(b[off+8:], second)
			p, err = NewPlan(openBytes(t, b), "custom_labels_current_set")
			require.NoError(t, err)
			require.Equal(t, [2]uint64{first, second}, p.initial, "%s %s", compiler, dialects[i])
			if model != GeneralDynamic {
				continue
			}
			require.True(t, p.offsetSlot)
			const bias = 0x7f00_0000_0000
			_, err = p.Resolve(words{bias + p.slot: 1, bias + p.slot + 8: second}, bias, Target{Machine: f.Machine, Libc: Glibc})
			require.ErrorIs(t, err, ErrNotRelocated, "the first word is relocated, the second is not")
			_, err = p.Resolve(words{bias + p.slot: 1, bias + p.slot + 8: second + 8}, bias, Target{Machine: f.Machine, Libc: Glibc})
			require.NoError(t, err)
		}
	}
}
