//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
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
	// maxStops bounds how often a thread is stopped anew when the machine, and
	// not the program, kept it from stopping in time.
	maxStops = 5
)

// verdict is what became of a cell.
type verdict struct {
	cell    cell.Cell
	program *program
	sources []process.SourceStatus // those that are read
	sinceNs uint64                 // samples count from when the sources are active
	untilNs uint64                 // up to when the program is ended
	samples int                    // that agree
	err     error
}

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
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
	if v.err = s.watch(p.pid()); v.err != nil {
		return v
	}
	if v.err = v.inspect(dir); v.err == nil {
		v.err = v.sample(s)
	}
	return v
}

// inspect looks at the program from user space.
func (v *verdict) inspect(dir string) error {
	info, err := inspect(v.program.pid())
	if err != nil {
		return err
	}
	want := v.cell.Sources(dir)
	if len(info.Sources) != len(want) {
		return fmt.Errorf("found %d sources, not %d: %+v", len(info.Sources), len(want), info.Sources)
	}
	for _, w := range want {
		i := slices.IndexFunc(info.Sources, func(s process.SourceStatus) bool { return s.Path == w.Path })
		if i < 0 {
			return fmt.Errorf("no source in %s: %+v", w.Path, info.Sources)
		}
		if err := v.source(w, info.Sources[i]); err != nil {
			return fmt.Errorf("source in %s: %w", w.Definer, err)
		}
	}
	for _, name := range threadNames {
		if err := v.read(v.program.threads[name]); err != nil {
			return fmt.Errorf("thread %s: %w", name, err)
		}
	}
	return nil
}

// inspect repeats process.Inspect, which waits for a second only, while a source
// is still being relocated.
func inspect(pid int) (*process.Info, error) {
	deadline := time.Now().Add(activeTimeout)
	for {
		info, err := process.Inspect(context.Background(), procfs.FS{}, pid)
		if err != nil || time.Now().After(deadline) || !slices.ContainsFunc(info.Sources, func(s process.SourceStatus) bool {
			return s.State == process.SourceNotRelocated
		}) {
			return info, err
		}
	}
}

// source compares one source with what the cell's name says, and its location
// with the program's own words.
func (v *verdict) source(want cell.Source, got process.SourceStatus) error {
	state := process.SourceActive
	if want.Duplicate {
		state = process.SourceDuplicate
	}
	if got.State != state || got.ABI != want.ABI || got.Model != want.Model || got.Location.Kind.String() != want.Kind {
		return fmt.Errorf("%s %s %s at %s %s, not %s %s at %s",
			got.State, got.ABI, got.Model, got.Location.Kind, got.Err, want.ABI, want.Model, want.Kind)
	}
	b := v.program.definers[want.Definer]
	at := got.Location
	if at.Kind != tlsresolve.Static && (at.Module != b.module || uint64(at.Offset) != b.offset) {
		return fmt.Errorf("module %d offset %d, not %d, %d", at.Module, at.Offset, b.module, b.offset)
	}
	for _, name := range threadNames {
		if err := v.address(want, at, v.program.threads[name]); err != nil {
			return fmt.Errorf("thread %s: %w", name, err)
		}
	}
	if got.State == process.SourceActive {
		v.sources = append(v.sources, got)
	}
	return nil
}

// address evaluates the location on one thread.
func (v *verdict) address(want cell.Source, at tlsresolve.Location, th *thread) error {
	mem := procfs.Memory{PID: v.program.pid()}
	got, err := at.Address(mem, machine(), th.tp)
	if truth, ok := th.variables[want.Definer]; ok {
		if err == nil && got != truth {
			err = fmt.Errorf("address %#x, not %#x", got, truth)
		}
		return err
	}
	// glibc allocates the blocks of libraries that are loaded later when a
	// thread first uses them.
	lazy := at.Kind == tlsresolve.DTVGlibc && v.cell.Load.Later()
	switch absent := errors.Is(err, tlsresolve.ErrNotAllocated) || errors.Is(err, tlsresolve.ErrStaleModule); {
	case lazy && !absent:
		return fmt.Errorf("address %#x (%w) of a variable that the thread does not have", got, err)
	case !lazy:
		return err
	}
	return nil
}

// read reads the labels of one thread from user space.
func (v *verdict) read(th *thread) error {
	var tp uint64
	var section []byte
	var err error
	for range maxStops {
		tp, section, err = v.section(th.tid)
		if !errors.Is(err, labelread.ErrBusy) && !errors.Is(err, labelread.ErrHangs) {
			break
		}
	}
	if err != nil {
		return err
	}
	if tp != th.tp {
		return fmt.Errorf("thread pointer %#x, not %#x", tp, th.tp)
	}
	keys := labels.NewKeyMap(keyNames[:])
	return v.labels(th, labels.NewCache(1<<20).Decode(keys, section))
}

// section reads all label sources of a thread that is stopped for it. After
// labelread.ErrHangs the visit may still be going on.
func (v *verdict) section(tid int) (tp uint64, section []byte, err error) {
	type reading struct {
		tp      uint64
		section []byte
	}
	mem := procfs.Memory{PID: v.program.pid()}
	done := make(chan reading, 1)
	_, err = labelread.Stop(v.program.pid(), tid, func(s labelread.Stopped) {
		r := reading{tp: s.ThreadPointer}
		for _, src := range v.sources {
			r.section = append(r.section, labelread.Read(mem, machine(), r.tp, src.ABI, src.Location).Block...)
		}
		done <- r
	})
	if err != nil {
		return 0, nil, err
	}
	r := <-done
	return r.tp, r.section, nil
}

// sample makes the threads burn until there are enough samples of each.
func (v *verdict) sample(s *sampling) error {
	pid := v.program.pid()
	deadline := time.Now().Add(activeTimeout)
	for len(s.active(pid)) != len(v.sources) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d sources published, not %d", len(s.active(pid)), len(v.sources))
		}
		time.Sleep(time.Millisecond)
	}
	v.sinceNs = monotonicNow()
	for i := 0; ; i++ {
		if err := v.program.burn(burst); err != nil {
			return err
		}
		for deadline := time.Now().Add(readDelay); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			enough, err := v.enough(s.taken(pid, v.sinceNs, math.MaxUint64))
			if enough || err != nil {
				return err
			}
		}
		if i == maxBursts {
			_, err := v.enough(s.taken(pid, v.sinceNs, math.MaxUint64))
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
	samples := s.taken(v.program.pid(), v.sinceNs, v.untilNs)
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
