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
	// The words that there are at least: structs that are copied, each with its seal.
	least := map[string]int{"find_hotspot": 25, "collect_python": 8, "begin_v8": 5, "read_label_sources": 20, "process_fork": 20, "process_fork_atomic": 20}
	checked := map[string]int{}
	for _, p := range []string{"sample_cpu", "process_fork", "process_fork_atomic"} {
		function, read := "", map[int16]bool{}
		for _, ins := range spec.Programs[p].Instructions {
			if name := ins.Symbol(); name != "" {
				function = name
			}
			if ins.OpCode.JumpOp() == asm.Call || ins.Symbol() != "" {
				clear(read) // r0 is another one
				continue
			}
			if least[function] == 0 || ins.OpCode.Class() != asm.LdXClass || ins.Src != asm.R0 || ins.OpCode.Size() != asm.DWord {
				continue
			}
			require.False(t, read[ins.Offset], "%s reads %#x of an element again", function, ins.Offset)
			read[ins.Offset] = true
			checked[function]++
		}
	}
	for function, words := range least {
		require.GreaterOrEqual(t, checked[function], words, function)
	}
}
