//go:build linux && (amd64 || arm64)

package bpf

import (
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
)

// What a seal was checked of is what is used: nothing of an element is read twice, once for the
// check and once more from memory that may be another's by then. The compiler may do so where a
// copy has no barrier (copy_element).
func TestElementsAreReadOnce(t *testing.T) {
	spec, err := loadProfiler()
	require.NoError(t, err)
	checked := map[string]int{"find_hotspot": 0, "collect_python": 0, "begin_v8": 0, "read_label_sources": 0, "process_fork": 0}
	for _, p := range []string{"sample_cpu", "process_fork"} {
		function, read := "", map[int16]bool{}
		for _, ins := range spec.Programs[p].Instructions {
			if name := ins.Symbol(); name != "" {
				function = name
			}
			if ins.OpCode.JumpOp() == asm.Call || ins.Symbol() != "" {
				clear(read) // r0 is another one
				continue
			}
			if _, ok := checked[function]; !ok || ins.OpCode.Class() != asm.LdXClass || ins.Src != asm.R0 || ins.OpCode.Size() != asm.DWord {
				continue
			}
			require.False(t, read[ins.Offset], "%s reads %#x of an element again", function, ins.Offset)
			read[ins.Offset] = true
			checked[function]++
		}
	}
	for function, words := range checked {
		require.GreaterOrEqual(t, words, 20, function)
	}
}
