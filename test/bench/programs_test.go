//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
)

// A samplingTime is what the sampling programs of a process have run.
type samplingTime struct {
	runs  uint64
	total time.Duration
}

func (a samplingTime) minus(b samplingTime) samplingTime {
	return samplingTime{runs: a.runs - b.runs, total: a.total - b.total}
}

// perRun in ns.
func (a samplingTime) perRun() float64 { return float64(a.total.Nanoseconds()) / float64(a.runs) }

// A samplingProgram is one on perf events that another process has loaded.
type samplingProgram struct {
	t       *testing.T
	program []*ebpf.Program
}

// openSamplingPrograms finds the programs of a process that run on perf events. What
// they call (tail calls included) counts as theirs, and only they are counted as runs.
func openSamplingPrograms(t *testing.T, pid int) *samplingProgram {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo", pid)
	fds, err := os.ReadDir(dir)
	require.NoError(t, err)
	s := &samplingProgram{t: t}
	seen := map[ebpf.ProgramID]bool{}
	for _, fd := range fds {
		b, err := os.ReadFile(dir + "/" + fd.Name())
		if os.IsNotExist(err) {
			continue // closed meanwhile
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(line, ":")
			if name != "prog_id" {
				continue
			}
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			require.NoError(t, err)
			s.open(seen, ebpf.ProgramID(id))
		}
	}
	require.NotEmpty(t, s.program, "the process has no program on perf events")
	return s
}

func (s *samplingProgram) open(seen map[ebpf.ProgramID]bool, id ebpf.ProgramID) {
	if seen[id] {
		return
	}
	seen[id] = true
	program, err := ebpf.NewProgramFromID(id)
	require.NoError(s.t, err)
	if program.Type() != ebpf.PerfEvent {
		program.Close()
		return
	}
	s.program = append(s.program, program)
}

func (s *samplingProgram) close() {
	for _, p := range s.program {
		p.Close()
	}
}

// time needs the kernel to count it: ebpf.EnableStats.
func (s *samplingProgram) time() (sum samplingTime) {
	s.t.Helper()
	for _, p := range s.program {
		stats, err := p.Stats()
		require.NoError(s.t, err)
		sum.runs += stats.RunCount
		sum.total += stats.Runtime
	}
	return sum
}
