//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"time"
)

// ProgramRuntime returns how often the sampling program ran and how long in
// all, as the kernel counts while kernel.bpf_stats_enabled is set, by whomever.
func (s *Sampler) ProgramRuntime() (runs uint64, total time.Duration, err error) {
	stats, err := s.objs.SampleCpu.Stats()
	if err != nil {
		return 0, 0, fmt.Errorf("read run time of the sampling program: %w", err)
	}
	return stats.RunCount, stats.Runtime, nil
}
