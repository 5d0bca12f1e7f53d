// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	target "github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxThreadsListed bounds the threads of a process that are counted.
	maxThreadsListed = 1 << 16
	// maxThreadsDuration bounds the time spent on the threads of a process.
	maxThreadsDuration = 10 * time.Second
)

// inspectProcess looks at one process and at most so many of its threads.
func inspectProcess(ctx context.Context, pid, threads int) (r processReport) {
	r.PID = pid
	fs := procfs.FS{}
	info, err := target.Inspect(ctx, fs, pid)
	if err != nil {
		return r.fail(err)
	}
	r.PID, r.Name, r.Executable = info.PID, info.Name, info.Path
	r.describeContext(info)
	for i := range info.Sources {
		r.Sources = append(r.Sources, newSourceReport(&info.Sources[i]))
	}
	r.describeLibrary(info)
	r.describeLanguage(fs, info)
	defer r.advise()
	if !r.readable() {
		r.explain(info)
		return r
	}
	if err := r.readThreads(ctx, fs, threads); err != nil {
		return r.fail(fmt.Errorf("inspect process %d: %w", pid, err))
	}
	// An exec in between would have made sources into places of another program.
	after, err := target.Inspect(ctx, fs, pid)
	if err != nil {
		return r.fail(err)
	}
	r.Changed = after.Path != info.Path || !slices.Equal(after.Sources, info.Sources)
	return r
}

// readThreads reads the labels of threads, one thread after the other.
func (r *processReport) readThreads(ctx context.Context, fs procfs.FS, limit int) error {
	tids, _, err := fs.Threads(r.PID, maxThreadsListed)
	if err != nil {
		return err
	}
	end := time.Now().Add(maxThreadsDuration)
	for i, tid := range tids {
		if i == limit || time.Now().After(end) || ctx.Err() != nil {
			r.ThreadsLeftOut, r.outOfTime = len(tids)-i, i < limit
			return ctx.Err()
		}
		t, err := r.readThread(fs, tid)
		if errors.Is(err, labelread.ErrPermission) || errors.Is(err, labelread.ErrHangs) {
			return err // it will be so for the others
		}
		if t != nil {
			r.Threads = append(r.Threads, *t)
		}
	}
	return nil
}

// readThread reads the labels of one thread. It returns nil if that has exited.
func (r *processReport) readThread(fs procfs.FS, tid int) (*threadReport, error) {
	stat, err := fs.Stat(tid)
	if err != nil || stat.Dead() {
		return nil, nil
	}
	t := &threadReport{TID: tid, Name: stat.Comm}
	if stat.KernelMade {
		t.Error = "made by the kernel, runs no code of the program, has no labels"
		return t, nil
	}
	readings := make([]labelread.Reading, len(r.Sources))
	compat := false
	stood, err := labelread.Stop(r.PID, tid, func(s labelread.Stopped) {
		compat = s.Compat
		for i := range r.Sources {
			if source := &r.Sources[i]; source.active() && !compat {
				readings[i] = labelread.Read(procfs.Memory{PID: tid}, labelsource.HostMachine(), s, source.source)
			}
		}
	})
	switch {
	case errors.Is(err, labelread.ErrExited):
		return nil, nil
	case err != nil:
		t.Error = fmt.Sprint(err)
		return t, err
	case compat:
		t.Error = "runs 32-bit code, whose labels are not read"
		return t, nil
	}
	t.StoodNs = stood.Nanoseconds()
	for i := range r.Sources {
		if r.Sources[i].active() {
			t.Readings = append(t.Readings, newReadingReport(i+1, &r.Sources[i], &readings[i], r.keys))
		}
	}
	return t, nil
}

func newReadingReport(number int, source *sourceReport, reading *labelread.Reading, keys *labels.KeyMap) readingReport {
	r := readingReport{Source: number, Outcome: reading.Outcome.String(), Reason: reasonOf(source, reading)}
	if reading.Addr != 0 {
		r.Variable = fmt.Sprintf("%#x", reading.Addr)
	}
	d := labels.Decode(keys, reading.Block)
	for l := range d.Set.All() {
		r.Labels = append(r.Labels, labelText{l.Key, l.Value})
	}
	if !d.Link.IsZero() {
		r.TraceID, r.SpanID = fmt.Sprintf("%x", d.Link.TraceID), fmt.Sprintf("%x", d.Link.SpanID)
		r.Flags = fmt.Sprintf("%02x", d.Flags)
	}
	r.Truncated = d.Set.Truncated()
	r.Irregular = irregularities(&d.Counts)
	return r
}
