//go:build linux

package labelsource

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// maxCandidates bounds the mapped files that are tried as the program that a
// loader runs, and those tried as the C library.
const maxCandidates = 16

// loaderOf tells the C library of a process by its dynamic loader, and whether
// the loader was started with the program as its argument.
func loaderOf(mappings []executable.Mapping, program procfs.FileID) (libc tlsresolve.Libc, byLoader bool) {
	i := slices.IndexFunc(mappings, func(m executable.Mapping) bool { return m.File != nil && m.File.ID() == program })
	if i < 0 {
		return tlsresolve.UnknownLibc, false
	}
	if f := mappings[i].File.Facts(); f.Interp != "" || f.Program {
		return tlsresolve.LibcBehind(f.Interp, executable.Paths(mappings)), false
	}
	// It names no loader and is no program: a loader. Under the name of a
	// library, as musl's often is, it is known by what the program asks for.
	if libc = tlsresolve.LibcOf(mappings[i].Path); libc != tlsresolve.UnknownLibc {
		return libc, true
	}
	for i := range mappings {
		if f := mappings[i].File; f != nil && f.Facts().Program && f.Facts().Interp != "" {
			return tlsresolve.LibcBehind(f.Facts().Interp, executable.Paths(mappings)), true
		}
	}
	return tlsresolve.UnknownLibc, false
}

// linked tells package tlsresolve of the files that lead to what the dynamic
// loader of a process keeps in memory.
type linked struct {
	mappings []executable.Mapping
	program  procfs.FileID
	byLoader bool // program is the loader itself
	threadDB func(*executable.Mapping) (tlsresolve.ThreadDB, error)
}

// DebugAddresses returns where the program has its DT_DEBUG. When the loader was
// started with a program as its argument, any executable may be that program;
// the loader fills in the place of the right one.
func (l *linked) DebugAddresses() (addresses []uint64) {
	for i := range l.mappings {
		m := &l.mappings[i]
		if !m.Biased || m.File.Facts().Debug == 0 {
			continue
		}
		addr := m.Bias + m.File.Facts().Debug
		if (l.byLoader || m.File.ID() == l.program) && !slices.Contains(addresses, addr) {
			addresses = append(addresses, addr)
		}
		if len(addresses) == maxCandidates {
			break
		}
	}
	return addresses
}

// ThreadDB returns what the C library says of itself. It is looked for by name;
// another library of such a name says nothing.
func (l *linked) ThreadDB() (db tlsresolve.ThreadDB, bias uint64, err error) {
	tried := map[*executable.File]bool{}
	for i := range l.mappings {
		m := &l.mappings[i]
		if !m.Biased || tried[m.File] || !strings.HasPrefix(path.Base(m.Path), "libc.so") {
			continue
		}
		tried[m.File] = true
		if db, err = l.threadDB(m); !errors.Is(err, tlsresolve.ErrNoThreadDB) {
			return db, m.Bias, err
		}
		if len(tried) == maxCandidates {
			break
		}
	}
	return tlsresolve.ThreadDB{}, 0, tlsresolve.ErrNoThreadDB
}
