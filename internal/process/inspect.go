//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// Errors of Inspect. procfs.ErrNoProcess is another one.
var (
	// ErrKernelThread says that there is no program to look at.
	ErrKernelThread = errors.New("a kernel thread, which runs no program")

	// ErrPermission says that the process may not be read.
	ErrPermission = errors.New("no permission to read the process: that takes its user or CAP_SYS_PTRACE, and a kernel.yama.ptrace_scope below 3")

	// ErrArchitecture says that the program is for another machine, or for 32 bits.
	ErrArchitecture = errors.New("a program for another architecture")
)

// maxInspectDuration bounds the time in which Inspect tries again.
const maxInspectDuration = time.Second

// Inspect takes one look at a process, with what the Table does for each: the
// answer is the one that samples get. While the dynamic loader is at work it
// looks again, for up to a second. pid may be that of any thread.
//
// The files in the answer can be opened while the process maps them. Inspect
// may block on the filesystems and the page faults of the process, which ctx
// does not end; it only ends waiting between looks.
func Inspect(ctx context.Context, proc procfs.FS, pid int) (*Info, error) {
	info, err := inspect(ctx, proc, pid)
	if err != nil {
		return nil, fmt.Errorf("inspect process %d: %w", pid, err)
	}
	return info, nil
}

func inspect(ctx context.Context, proc procfs.FS, pid int) (*Info, error) {
	status, err := proc.Status(pid)
	if err != nil {
		return nil, err
	}
	if status.TGID != 0 {
		pid = status.TGID
	}
	stat, err := proc.Stat(pid)
	if err != nil {
		return nil, err
	}
	if stat.KernelThread {
		return nil, ErrKernelThread
	}
	if _, err := proc.LiveThread(pid); err != nil {
		return nil, fmt.Errorf("%w: it has exited", procfs.ErrNoProcess)
	}
	var denied bool
	r := &reader{}
	r.init(Options{
		FS: proc, MaxDescriptors: -1, // none is kept open
		memory: func(pid int) tlsresolve.Memory { return guarded{procfs.Memory{PID: pid}, &denied} },
	})
	const tick = int64(time.Second) / procfs.TicksPerSecond
	sub := &subject{pid: pid, id: record.ProcessID{TGID: uint32(pid), StartNs: uint64(int64(stat.StartTicks)*tick - r.bootOffset)}}
	info, err := r.inspect(ctx, sub)
	if err != nil {
		return nil, permission(err)
	}
	if denied {
		return nil, ErrPermission
	}
	return info, readable(info, sub.read.program)
}

// inspect reads a process until nothing is being loaded any more. Each look is
// one at everything, so that an exec in between leaves nothing of the old image.
func (r *reader) inspect(ctx context.Context, sub *subject) (*Info, error) {
	var s scratch
	began := r.now()
	for i := 0; ; i++ {
		l, err := r.look(sub, workLoad, &s)
		if err == nil {
			err = l.refused
		}
		if err == nil {
			_, _, err = r.identify(sub.id, sub.pid)
		}
		switch {
		case errors.Is(err, errReplaced):
			return nil, fmt.Errorf("%w: %w", procfs.ErrNoProcess, err)
		case err != nil:
			return nil, err
		}
		sub.read = l.read
		switch {
		case !l.loading && !l.updating || i == len(retryDelays):
			return &l.info, nil
		case i > 0 && r.now()-began+int64(retryDelays[i]) > int64(maxInspectDuration):
			return &l.info, nil // but a second look there always is: the first one believes no slot
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryDelays[i]):
		}
	}
}

// readable reports why nothing of a process that could be read makes sense.
func readable(i *Info, program procfs.FileID) error {
	if !i.Loaded || len(i.Mappings) == 0 {
		return procfs.ErrNoProcess // it was exiting
	}
	for j := range i.Mappings {
		f := i.Mappings[j].File
		if f == nil || f.ID() != program {
			continue
		}
		other := f.Err() == nil && f.Facts().Layout.Machine != labelsource.HostMachine()
		if other || errors.Is(f.Err(), elffile.ErrUnsupported) {
			return ErrArchitecture
		}
	}
	return nil
}

func permission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (%w)", ErrPermission, err)
	}
	return err
}

// guarded notes that memory was refused for want of permission, which the state
// of a label source does not tell from others.
type guarded struct {
	tlsresolve.Memory
	denied *bool
}

func (m guarded) ReadAt(p []byte, addr uint64) error {
	err := m.Memory.ReadAt(p, addr)
	if errors.Is(err, fs.ErrPermission) {
		*m.denied = true
	}
	return err
}
