//go:build linux && (amd64 || arm64)

package pipeline

import (
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// schedule is the function of the kernel in which a thread leaves the CPU.
const schedule = "__schedule"

// kernelTrim removes the frames of the program that took the sample from kernel
// stacks of switches. How many there are depends on the kernel, but is the same for
// all stacks; it is found out with the first one. Without the kernel's symbols none
// are removed.
type kernelTrim struct {
	fs     procfs.FS
	known  bool
	frames int
}

// trim returns the frames from schedule on; leaf first.
func (k *kernelTrim) trim(frames []uint64) []uint64 {
	if !k.known && len(frames) > 0 {
		k.known, k.frames = true, k.leading(frames)
	}
	if k.frames >= len(frames) {
		return frames
	}
	return frames[k.frames:]
}

func (k *kernelTrim) leading(frames []uint64) int {
	kernel, err := symbol.NewKernel(k.fs)
	if err != nil {
		return 0
	}
	for i, addr := range frames {
		if fn, _, ok := kernel.Lookup(addr); ok && fn.Name == schedule {
			return i
		}
	}
	return 0
}
