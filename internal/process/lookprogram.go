//go:build linux

package process

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A file that is removed, renamed or given to another user is another one from then on
// (procfs.FileID). So its program can be mapped under another name than /proc/PID/exe has a moment
// later or earlier. Both are read again then, until they agree: what is read of a file is never
// taken for the program's unless it is of the very state that the program's file has.

// maps reports whether a process maps a file executable.
func (i *Info) maps(id procfs.FileID) bool {
	return slices.ContainsFunc(i.Mappings, func(m executable.Mapping) bool { return m.File != nil && m.File.ID() == id })
}

// readProgram identifies what a process runs, in the state that it has by now. It comes before the
// files: reading these may take seconds.
func (r *reader) readProgram(l *look) {
	program, err := r.opts.FS.StatExecutable(l.tid)
	if err != nil && l.info.maps(l.read.program) {
		return // it is known
	}
	l.read.program = program // zero matches no file
	l.again = mayPass(err)
}

// programChanged reports whether a process maps its program as it was before or after readProgram
// has identified it, and not as it was then.
func (l *look) programChanged() bool {
	return !l.info.maps(l.read.program) && slices.ContainsFunc(l.info.Mappings, l.otherProgram)
}

// otherProgram reports whether a mapping shows the file of the program, but in another state.
func (l *look) otherProgram(m executable.Mapping) bool {
	if m.File == nil {
		return false
	}
	id, program := m.File.ID(), l.read.program
	return id != program && id.Dev == program.Dev && id.Inode == program.Inode
}

// certain reports whether the label sources that a look has found follow from the file of a program
// alone, of which the event of the process's exec has told. That /proc/PID/exe shows this file is not
// sure: who has a user namespace can have it show another one (PR_SET_MM_MAP), and what follows from
// that is not the program's.
func (r *reader) certain(l *look, program record.FileKey) bool {
	return l.read.resolver.Certain() && (keyOf(l.read.program) == program || r.mappedKey(l) == program)
}

// keyOf is what a file is to the kernel that is executed, as far as stat(2) tells: it names another
// device on btrfs, and on overlayfs if the file is on another file system than what is written there.
func keyOf(id procfs.FileID) record.FileKey {
	return record.FileKey{
		Inode: id.Inode, Size: uint64(id.Size), Dev: unix.Major(id.Dev)<<20 | unix.Minor(id.Dev),
		ChangedSec: id.CtimeNs / int64(time.Second), ChangedNsec: uint32(id.CtimeNs % int64(time.Second)),
	}
}

// canBe reports whether a file can be the program of a key, as far as the sizes of both are known: of these the kernel
// and /proc say the same whatever the filesystem.
func canBe(program record.FileKey, file procfs.FileID) bool {
	return program.Size == 0 || file.Size == 0 || program.Size == uint64(file.Size)
}

// awaitExec puts off a look at a process that has just executed a program and meanwhile runs another one, as what begins
// with a shell, env or a wrapper of a compiler does. The event of that is still to come, and ends what is to be done for
// the process as what it was; until then a look costs as much as one at what it is now. If none comes it is looked at
// when it is not young any more.
func (t *Table) awaitExec(p *Process, w work) bool {
	t.mu.RLock()
	program := p.program
	waits := !p.forked && t.now() < p.youngUntilNs
	t.mu.RUnlock()
	if !waits {
		return false
	}
	if runs, err := t.opts.FS.StatExecutable(p.pid); err != nil || canBe(program, runs) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.exited { // else the event has come
		t.jobs.schedule(p, w, p.youngUntilNs)
	}
	return true
}

// mappedKey is what the kernel tells of the program's file, zero if it does not: the same as when it is
// executed, but on overlayfs. What /proc/PID/maps tells may be of another file that was there a moment ago.
func (r *reader) mappedKey(l *look) (key record.FileKey) {
	i := slices.IndexFunc(l.info.Mappings, func(m executable.Mapping) bool { return m.File != nil && !m.Moved && m.File.ID() == l.read.program })
	if i < 0 || r.opts.NameFile == nil {
		return key
	}
	m := &l.info.Mappings[i]
	mapping := procfs.Mapping{Start: m.Start, Limit: m.Limit, Inode: m.Inode, Path: m.Path}
	file, err := r.opts.FS.OpenMapped(l.tid, mapping, l.read.program)
	if err != nil {
		return key
	}
	defer file.Close()
	key, _ = r.opts.NameFile(file) // zero with an error
	return key
}

// mayPass reports whether a file that could not be read or identified may be later, without
// anybody's doing.
func mayPass(err error) bool {
	if err == nil {
		return false
	}
	for _, lasting := range []error{fs.ErrPermission, procfs.ErrNotAllowed, procfs.ErrNotRegular, procfs.ErrNoProcess} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}
