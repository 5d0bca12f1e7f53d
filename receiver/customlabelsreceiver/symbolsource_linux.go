//go:build amd64 || arm64

package customlabelsreceiver

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// fileSource shows a file of the process table to the symbol cache.
type fileSource struct {
	*process.File
	fs procfs.FS
}

// Open implements symbol.Source.
func (s fileSource) Open() (symbol.Contents, int64, error) {
	f, size, err := s.File.Open()
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

// OpenPath implements symbol.Source.
func (s fileSource) OpenPath(root symbol.Root, path string) (symbol.Contents, int64, error) {
	pid := 0
	if root == symbol.TargetRoot {
		if pid = s.PID(); pid == 0 {
			return nil, 0, os.ErrNotExist
		}
	}
	f, info, err := s.fs.OpenPath(pid, path, 0)
	if err != nil {
		return nil, 0, err
	}
	if pid != 0 {
		// Where it lies is the target's choice.
		status, err := s.fs.Status(pid)
		if err == nil && !info.ReadableBy(status.UID) {
			err = errNotReadable
		}
		if err != nil {
			f.Close()
			return nil, 0, err
		}
	}
	return f, info.Size, nil
}

// mapSource finds the perf map of a process.
type mapSource struct {
	process *process.Process
	table   *process.Table
	fs      procfs.FS
}

var (
	// errOwner says that a perf map was not written by its process.
	errOwner = errors.New("perf map of another user")
	// errNotReadable says that a file lies where a process has us look, and that the
	// process's user may not read it.
	errNotReadable = errors.New("file that the process's user may not read")
)

// OpenMap implements symbol.MapSource: it opens /tmp/perf-PID.map in the mount
// namespace of the process, PID being the one that the process itself sees. The file
// must belong to the process's user, or to root and be readable by that user, and be no
// link: otherwise a process could have us read, and emit as names, what it may not read.
func (s mapSource) OpenMap() (symbol.MapFile, error) {
	tid, err := s.table.Thread(s.process)
	if err != nil {
		return symbol.MapFile{}, os.ErrNotExist // it has gone
	}
	status, err := s.fs.Status(tid)
	if err != nil {
		return symbol.MapFile{}, err
	}
	// Of a thread that is not the leader, NSpid is its own id.
	pid := status.NSPID
	if tid != s.process.Info().PID {
		if leader, err := s.fs.Status(s.process.Info().PID); err == nil {
			pid = leader.NSPID
		}
	}
	f, info, err := s.fs.OpenPath(tid, fmt.Sprintf("/tmp/perf-%d.map", pid), unix.O_NOFOLLOW)
	if err != nil {
		return symbol.MapFile{}, err
	}
	if _, gone := s.table.Thread(s.process); gone != nil {
		f.Close()
		return symbol.MapFile{}, os.ErrNotExist // it may have been another's
	}
	switch {
	case info.UID != status.UID && info.UID != 0:
		err = errOwner
	case !info.ReadableBy(status.UID):
		err = errNotReadable
	}
	if err != nil {
		f.Close()
		return symbol.MapFile{}, err
	}
	return symbol.MapFile{Contents: f, ID: info.FileID}, nil
}
