//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
)

// A programTime is what programs of a process have run.
type programTime struct {
	runs  uint64
	total time.Duration
}

func (a programTime) minus(b programTime) programTime {
	return programTime{runs: a.runs - b.runs, total: a.total - b.total}
}

// perRun in ns.
func (a programTime) perRun() float64 { return float64(a.total.Nanoseconds()) / float64(a.runs) }

// A programSet is programs that another process has loaded.
type programSet struct {
	t       *testing.T
	types   []ebpf.ProgramType // none: all
	program []*ebpf.Program
}

// openPrograms finds the programs of a process of some types. What they call (tail calls
// included) counts as theirs, and only they are counted as runs.
func openPrograms(t *testing.T, pid int, types ...ebpf.ProgramType) *programSet {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo", pid)
	fds, err := os.ReadDir(dir)
	require.NoError(t, err)
	s := &programSet{t: t, types: types}
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
	require.NotEmpty(t, s.program, "the process has no such program")
	return s
}

func (s *programSet) open(seen map[ebpf.ProgramID]bool, id ebpf.ProgramID) {
	if seen[id] {
		return
	}
	seen[id] = true
	program, err := ebpf.NewProgramFromID(id)
	require.NoError(s.t, err)
	if len(s.types) > 0 && !slices.Contains(s.types, program.Type()) {
		program.Close()
		return
	}
	s.program = append(s.program, program)
}

func (s *programSet) close() {
	for _, p := range s.program {
		p.Close()
	}
}

// time needs the kernel to count it: ebpf.EnableStats.
func (s *programSet) time() (sum programTime) {
	s.t.Helper()
	for _, p := range s.program {
		stats, err := p.Stats()
		require.NoError(s.t, err)
		sum.runs += stats.RunCount
		sum.total += stats.Runtime
	}
	return sum
}
