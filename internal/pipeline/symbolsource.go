//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// fileSource shows a file of the process table to the symbol cache.
type fileSource struct {
	*executable.File
	mapping *executable.Mapping // of the process, which shows it
	info    *process.Info       // that has the mapping: what is known now may have been taken back
	process *process.Process    // that was sampled
	table   *process.Table
	fs      procfs.FS
}

// Open implements symbol.Source.
func (s fileSource) Open() (symbol.Contents, int64, error) {
	thread, err := s.table.Thread(s.process)
	if err != nil {
		thread.TID = 0
	}
	f, size, err := s.File.OpenBy(s.mapping.AskedFor(thread.TID, executable.Owner{UID: s.info.UID, Container: s.info.ContainerID}))
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

// Path implements symbol.Source. Another process that maps the file may call it what it likes.
func (s fileSource) Path() string { return s.mapping.Path }

// Owner implements symbol.Source.
func (s fileSource) Owner() symbol.Owner { return ownerOf(s.info) }

// ownerOf tells whose a process is of which /proc has been read: else it would be root's.
func ownerOf(info *process.Info) symbol.Owner {
	return symbol.Owner{UID: info.UID, Container: info.ContainerID, Cgroup: info.Cgroup, PID: info.PID}
}

// errDebugOwner says that a debug file is of a user who could not have written the file itself.
var errDebugOwner = errors.New("debug file of another user")

// OpenPath implements symbol.Source. Where a debug file lies, and what it is called, is the
// target's choice: what its user may not read stays closed, on our side too. What it says
// holds for other processes that map the file: so it must be root's, or of who owns the file.
func (s fileSource) OpenPath(root symbol.Root, path string) (symbol.Contents, int64, error) {
	f, info, err := s.openPath(root, path)
	if err != nil {
		return nil, 0, err
	}
	if info.UID != 0 && info.UID != s.UID() {
		f.Close()
		return nil, 0, errDebugOwner
	}
	return f, info.Size, nil
}

// openPath opens a file on behalf of the sampled process, or, if that has gone and the path is one of ours, of nobody.
func (s fileSource) openPath(root symbol.Root, path string) (*os.File, procfs.PathInfo, error) {
	below := procfs.ProcessRoot
	if root == symbol.HostRoot {
		below = procfs.OurRoot
	}
	thread, gone := s.table.Thread(s.process)
	if gone == nil {
		f, info, err := s.fs.OpenPath(thread.TID, below, path, 0)
		if err != nil {
			return nil, procfs.PathInfo{}, err
		}
		if gone = s.table.Still(s.process, thread); gone == nil {
			return f, info, nil
		}
		f.Close() // rights and root may have been another's
	}
	if root == symbol.HostRoot {
		return s.fs.OpenPath(0, below, path, 0)
	}
	return nil, procfs.PathInfo{}, fmt.Errorf("%w: %w", procfs.ErrNoProcess, gone)
}

// mapSource finds the perf map of a process.
type mapSource struct {
	info    *process.Info // as in fileSource
	process *process.Process
	table   *process.Table
	fs      procfs.FS
}

// Owner implements symbol.MapSource.
func (s mapSource) Owner() symbol.Owner { return ownerOf(s.info) }

var (
	// errOwner says that a perf map was not written by its process.
	errOwner = errors.New("perf map of another user")
	// errOldMap says that a process has written no perf map, but an earlier one has that had the same PID.
	errOldMap = fmt.Errorf("%w: perf map of an earlier process", os.ErrNotExist)
)

// mapSlack is by how much a perf map may seem older than the process that has written it: file systems keep times of a
// clock that is a tick behind, some in whole seconds.
const mapSlack = time.Second

// OpenMap implements symbol.MapSource: it opens /tmp/perf-PID.map in the mount
// namespace of the process, PID being the one that the process itself sees. The file
// must belong to the process's user, or to root and be readable by that user, and be no
// link: otherwise a process could have us read, and emit as names, what it may not read.
// Others must not have written it: it has no other name, by which they could have put it there,
// and only its owner and his own group, or root's, may write it.
//
// A map that was changed last before the process began is that of another one, which had its PID: in a container that
// was started again, or after PIDs have wrapped, or before an exec. It counts once the process writes to it. The times
// are compared by CLOCK_REALTIME: if that was set forward after the last write, the process's own map is none until the
// next write; if it was set back, another's may count.
func (s mapSource) OpenMap() (symbol.MapFile, error) {
	thread, err := s.table.Thread(s.process)
	if err != nil {
		return symbol.MapFile{}, os.ErrNotExist // it has gone
	}
	status, err := s.fs.Status(thread.TID)
	if err != nil {
		return symbol.MapFile{}, err
	}
	// Of a thread that is not the leader, NSpid is its own id.
	pid := status.NSPID
	if thread.TID != s.info.PID {
		if leader, err := s.fs.Status(s.info.PID); err == nil {
			pid = leader.NSPID
		}
	}
	f, info, err := s.fs.OpenPath(thread.TID, procfs.ProcessRoot, fmt.Sprintf("/tmp/perf-%d.map", pid), unix.O_NOFOLLOW)
	if err != nil {
		return symbol.MapFile{}, err
	}
	if s.table.Still(s.process, thread) != nil {
		f.Close()
		return symbol.MapFile{}, os.ErrNotExist // it may have been another's
	}
	ownGroup := info.GID == 0 || len(status.GIDs) > 0 && status.GIDs[0] == info.GID
	if info.UID != info.User && info.UID != 0 || info.Shared || info.GroupWrites && !ownGroup {
		f.Close()
		return symbol.MapFile{}, errOwner
	}
	if info.CtimeNs < s.table.Began(s.process).Add(-mapSlack).UnixNano() {
		f.Close()
		return symbol.MapFile{}, errOldMap
	}
	return symbol.MapFile{Contents: f, ID: info.FileID}, nil
}
