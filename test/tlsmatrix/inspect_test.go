//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

// maxStops bounds how often a thread is stopped anew when the machine, and not
// the program, kept it from stopping in time.
const maxStops = 5

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}

// inspect looks at the program from user space.
func (v *verdict) inspect(dir string) error {
	want := v.cell.Sources(dir)
	info, err := inspect(v.program.pid(), len(want))
	if err != nil {
		return err
	}
	if len(info.Sources) != len(want) {
		return fmt.Errorf("found %d sources, not %d: %+v", len(info.Sources), len(want), info.Sources)
	}
	for _, w := range want {
		i := slices.IndexFunc(info.Sources, func(s labelsource.Status) bool { return s.Path == w.Path })
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
// is still being relocated, or there are fewer than there should be: a busy machine may not get that far.
func inspect(pid, want int) (*process.Info, error) {
	deadline := time.Now().Add(activeTimeout)
	for {
		info, err := process.Inspect(context.Background(), procfs.FS{}, pid)
		if err != nil || time.Now().After(deadline) || len(info.Sources) >= want && !slices.ContainsFunc(info.Sources, func(s labelsource.Status) bool {
			return s.State == labelsource.NotRelocated
		}) {
			return info, err
		}
	}
}

// source compares one source with what the cell's name says, and its location
// with the program's own words.
func (v *verdict) source(want cell.Source, got labelsource.Status) error {
	state := labelsource.Active
	if want.Duplicate {
		state = labelsource.Duplicate
	}
	if got.State != state || got.ABI != want.ABI || got.Model != want.Model || got.Location.Kind.String() != want.Kind {
		return fmt.Errorf("%s %s %s at %s %s, not %s %s at %s",
			got.State, got.ABI, got.Model, got.Location.Kind, got.Err, want.ABI, want.Model, want.Kind)
	}
	b := v.program.definers[want.Definer]
	at := got.Location
	if at.Kind != record.TLSStatic && (at.Module != b.module || uint64(at.Offset) != b.offset) {
		return fmt.Errorf("module %d offset %d, not %d, %d", at.Module, at.Offset, b.module, b.offset)
	}
	for _, name := range threadNames {
		if err := v.address(want, at, v.program.threads[name]); err != nil {
			return fmt.Errorf("thread %s: %w", name, err)
		}
	}
	if got.State == labelsource.Active {
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
	lazy := at.Kind == record.TLSDTVGlibc && v.cell.Load.Later()
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
	return v.labels(th, labels.Decode(keys, section))
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
			r.section = append(r.section, labelread.Read(mem, machine(), s, src.Source()).Block...)
		}
		done <- r
	})
	if err != nil {
		return 0, nil, err
	}
	r := <-done
	return r.tp, r.section, nil
}
