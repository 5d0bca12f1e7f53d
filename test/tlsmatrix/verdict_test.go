//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

const (
	// burst is the CPU time that each thread burns at a time, and maxBursts
	// bounds how often it has to until there are minSamples of each thread.
	burst      = 8 * time.Millisecond
	maxBursts  = 50
	minSamples = 3
	// readDelay is within what samples are read from the ring buffer.
	readDelay = 250 * time.Millisecond
	// activeTimeout bounds the wait until the sources of a program are found,
	// which takes long where emulation or neighbours hold up the loader and us.
	activeTimeout = time.Minute
)

// verdict is what became of a cell.
type verdict struct {
	cell    cell.Cell
	program *program
	id      record.ProcessID
	sources []labelsource.Status // those that are read
	sinceNs uint64               // samples count from when the sources are active
	untilNs uint64               // up to when the program is ended
	samples int                  // that agree
	err     error
}

// judge runs a cell. The samples are judged again, by finish, when all are there.
func judge(c cell.Cell, dir string, s *sampling) (v verdict) {
	v.cell = c
	p, err := start(c, dir)
	if err != nil {
		v.err = fmt.Errorf("start: %w", err)
		return v
	}
	v.program = p
	defer func() {
		v.untilNs = monotonicNow()
		v.err = errors.Join(v.err, p.end())
	}()
	if v.id, v.err = s.watch(p.pid()); v.err != nil {
		return v
	}
	if v.err = v.inspect(dir); v.err == nil {
		v.err = v.sample(s)
	}
	return v
}

// sample makes the threads burn until there are enough samples of each.
func (v *verdict) sample(s *sampling) error {
	deadline := time.Now().Add(activeTimeout)
	for len(s.active(v.id)) != len(v.sources) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d sources published, not %d", len(s.active(v.id)), len(v.sources))
		}
		time.Sleep(time.Millisecond)
	}
	v.sinceNs = monotonicNow()
	for i := 0; ; i++ {
		if err := v.program.burn(burst); err != nil {
			return err
		}
		for deadline := time.Now().Add(readDelay); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			enough, err := v.enough(s.taken(v.id, v.sinceNs, math.MaxUint64))
			if enough || err != nil {
				return err
			}
		}
		if i == maxBursts {
			_, err := v.enough(s.taken(v.id, v.sinceNs, math.MaxUint64))
			return errors.Join(fmt.Errorf("fewer than %d samples of a thread", minSamples), err)
		}
	}
}

// enough judges samples, all of which must have the right labels.
func (v *verdict) enough(samples []sample) (bool, error) {
	counts := map[int]int{}
	for _, sm := range samples {
		th := v.threadOf(sm.tid)
		if th == nil {
			return false, fmt.Errorf("sample of an unknown thread %d", sm.tid)
		}
		if !sm.known {
			return false, fmt.Errorf("sample of thread %s without a look at its labels", th.name)
		}
		if err := v.labels(th, sm.decoded); err != nil {
			return false, fmt.Errorf("sample of thread %s: %w", th.name, err)
		}
		counts[sm.tid]++
	}
	for _, th := range v.program.threads {
		if counts[th.tid] < minSamples {
			return false, nil
		}
	}
	return true, nil
}

// finish judges all samples of the program.
func (v *verdict) finish(s *sampling) {
	if v.err != nil {
		return
	}
	samples := s.taken(v.id, v.sinceNs, v.untilNs)
	_, v.err = v.enough(samples)
	v.samples = len(samples)
}

func (v *verdict) threadOf(tid int) *thread {
	for _, th := range v.program.threads {
		if th.tid == tid {
			return th
		}
	}
	return nil
}
