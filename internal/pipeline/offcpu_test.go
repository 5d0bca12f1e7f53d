//go:build linux && (amd64 || arm64)

package pipeline

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/offcpu"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What was not looked at is made up for, whatever the numbers.
func TestWeighted(t *testing.T) {
	require.EqualValues(t, 1000, weighted(1000, 1))
	require.EqualValues(t, 4000, weighted(1000, 1/0.25))
	require.EqualValues(t, 333, weighted(100, 3.333))
	require.Positive(t, weighted(math.MaxUint64, 1e6))
}

// left is the sample of a thread of a user that leaves the CPU, with n frames.
func left(uid, thread uint32, timeNs uint64, n int) bpf.Switch {
	raw := make([]byte, record.SampleHeaderBytes+8*n)
	*(*record.SampleHeader)(unsafe.Pointer(&raw[0])) = record.SampleHeader{
		TimeNs: timeNs, Process: record.ProcessID{TGID: thread, StartNs: 1}, PID: thread, TID: thread, UID: uid, Thread: thread, UserFrames: uint16(n),
	}
	return bpf.Switch{Thread: thread, LeftNs: timeNs, Raw: raw}
}

// When memory has run out, threads that leave are dropped, but for those of users who have little in the
// batch and of threads that are off the CPU.
func TestLeaveWithoutMemory(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	r := &offCPUReader{threads: offcpu.NewTable(1 << 20)}
	threads := uint32(0)
	leave := func(uid uint32) {
		threads++
		r.sw = left(uid, threads, monotonicNow(), 100)
		r.leave(d)
	}
	leave(10)
	first := r.sw
	for range 99 {
		leave(10)
	}
	fill(d.batch, 20, 1000, "large")
	require.Equal(t, 100, r.threads.Len())
	d.memory.Add(budget.OfBatches, int(d.memory.Limit()))
	leave(10)
	leave(20)
	require.Equal(t, 100, r.threads.Len())
	require.EqualValues(t, 2, d.stream.dropped[DropNoMemory].Load())
	leave(30)
	require.Equal(t, 101, r.threads.Len())
	require.EqualValues(t, 2, d.stream.dropped[DropNoMemory].Load())

	before := r.threads.Bytes()
	_, ok := r.threads.Return(first.Thread, first.LeftNs)
	require.True(t, ok)
	leave(20) // which has no room
	require.Less(t, r.threads.Bytes(), before, "what was to be used again gives way")
}

// A user with many threads that wait takes no other's.
func TestLeaveOfManyThreads(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	r := &offCPUReader{threads: offcpu.NewTable(100 << 10)}
	first := monotonicNow()
	r.sw = left(10, 1, first, 100)
	r.leave(d)
	for thread := range uint32(1000) {
		r.sw = left(20, 2+thread, first+1, 100)
		r.leave(d)
	}
	require.NotZero(t, d.stream.dropped[DropEvicted].Load())
	_, ok := r.threads.Return(1, first)
	require.True(t, ok)
}

// Kernel stacks of switches begin where threads leave the CPU.
func TestKernelTrim(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "kallsyms"), []byte(
		"ffffffff81000000 T _stext\nffffffff81000100 T bpf_trace_run4\nffffffff81000200 t __schedule\nffffffff81000300 T schedule\nffffffff81000400 T _etext\n"), 0o600))
	stack := []uint64{0xffffffff81000110, 0xffffffff81000120, 0xffffffff81000210, 0xffffffff81000310}
	k := &kernelTrim{fs: procfs.FS{Root: root}}
	require.Equal(t, stack[2:], k.trim(stack))
	require.Empty(t, k.trim(nil))
	require.NoError(t, os.Remove(filepath.Join(root, "kallsyms")))
	traced := slices.Insert(slices.Clone(stack), 1, 0xffffffff81000128) // what calls all programs when there are several
	require.Equal(t, stack[2:], k.trim(traced), "others trace switches as well")
	require.Equal(t, stack[2:], k.trim(stack[1:]))
	require.Equal(t, stack[:2], k.trim(stack[:2]), "a shorter stack is not one that it was learned from")

	// Without the kernel's symbols nothing is known to be ours.
	k = &kernelTrim{fs: procfs.FS{Root: t.TempDir()}}
	require.Equal(t, stack, k.trim(stack))
}
