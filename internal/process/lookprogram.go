//go:build linux

package process

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// A file that is removed, renamed or given to another user is another one from then on
// (procfs.FileID). So its program can be mapped under another name than /proc/PID/exe has a moment
// later or earlier. Both are read again then, until they agree: what is read of a file is never
// taken for the program's unless it is of the very state that the program's file has.

// maps reports whether a process maps a file executable.
func (i *Info) maps(id procfs.FileID) bool {
	return slices.ContainsFunc(i.Mappings, func(m executable.Mapping) bool { return m.File != nil && m.File.ID() == id })
}

// readProgram identifies what a process runs, unless that is known and mapped. It comes before the
// files: reading these may take seconds.
func (r *reader) readProgram(l *look) {
	if !l.full && l.info.maps(l.read.program) {
		return
	}
	var err error
	l.read.program, err = r.opts.FS.StatExecutable(l.tid) // zero matches no file
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
