//go:build linux && (amd64 || arm64)

package pipeline

import (
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// schedule is the function of the kernel in which a thread leaves the CPU.
const schedule = "__schedule"

const (
	// maxLeading frames of the program that took the sample, and of what called it, stand before
	// schedule.
	maxLeading = 16
	// maxTrimLooks are taken at the kernel's symbols, which takes milliseconds.
	maxTrimLooks = 4
)

// kernelTrim removes the frames of the program that took the sample from kernel stacks of
// switches. How many there are depends on the kernel, and on whether others trace switches at the
// time; the place in schedule that they were called from does not. It is found out with the first
// stacks. Without the kernel's symbols no frames are removed.
type kernelTrim struct {
	fs    procfs.FS
	calls []uint64 // addresses in schedule
	looks int
}

// trim returns the frames from schedule on; leaf first.
func (k *kernelTrim) trim(frames []uint64) []uint64 {
	first := frames[:min(len(frames), maxLeading)]
	for i, addr := range first {
		if slices.Contains(k.calls, addr) {
			return frames[i:]
		}
	}
	if len(first) == 0 || k.looks == maxTrimLooks {
		return frames
	}
	k.looks++
	if i := k.leading(first); i >= 0 {
		k.calls = append(k.calls, frames[i])
		return frames[i:]
	}
	return frames
}

// leading returns how many frames stand before schedule, -1 if that is not known.
func (k *kernelTrim) leading(frames []uint64) int {
	kernel, err := symbol.NewKernel(k.fs)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(frames, func(addr uint64) bool {
		name, _, ok := kernel.Lookup(addr)
		return ok && name == schedule
	})
}
