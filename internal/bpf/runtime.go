//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// ProgramRuntime returns how often the sampling program ran and how long in
// all, as the kernel counts while kernel.bpf_stats_enabled is set, by whomever.
func (s *Sampler) ProgramRuntime() (runs uint64, total time.Duration, err error) {
	return programRuntime(s.objs.SampleCpu)
}

// ProgramRuntime is that of the program of switches.
func (o *OffCPU) ProgramRuntime() (runs uint64, total time.Duration, err error) {
	return programRuntime(o.objs.SwitchThreads)
}

func programRuntime(program *ebpf.Program) (runs uint64, total time.Duration, err error) {
	stats, err := program.Stats()
	if err != nil {
		return 0, 0, fmt.Errorf("read run time of %s: %w", program, err)
	}
	return stats.RunCount, stats.Runtime, nil
}
