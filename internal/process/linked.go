//go:build linux

package process

import (
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// maxCandidates bounds the mapped files that are tried as the program that a
// loader runs, and those tried as the C library.
const maxCandidates = 16

// loaderOf tells the C library of a process by its dynamic loader, and whether
// the loader was started with the program as its argument.
func loaderOf(mappings []ExecMapping, program procfs.FileID) (libc tlsresolve.Libc, byLoader bool) {
	i := slices.IndexFunc(mappings, func(m ExecMapping) bool { return m.File != nil && m.File.key == program })
	if i < 0 {
		return tlsresolve.UnknownLibc, false
	}
	if f := &mappings[i].File.facts; f.interp != "" || f.executable {
		return tlsresolve.LibcOf(f.interp), false
	}
	// It names no loader and is no program: a loader. Under the name of a
	// library, as musl's often is, it is known by what the program asks for.
	if libc = tlsresolve.LibcOf(mappings[i].Path); libc != tlsresolve.UnknownLibc {
		return libc, true
	}
	for i := range mappings {
		if f := mappings[i].File; f != nil && f.facts.executable && f.facts.interp != "" {
			return tlsresolve.LibcOf(f.facts.interp), true
		}
	}
	return tlsresolve.UnknownLibc, false
}

// linked tells package tlsresolve of the files that lead to what the dynamic
// loader of a process keeps in memory.
type linked struct {
	mappings []ExecMapping
	program  procfs.FileID
	byLoader bool // program is the loader itself
}

// DebugAddresses returns where the program has its DT_DEBUG. When the loader was
// started with a program as its argument, any executable may be that program;
// the loader fills in the place of the right one.
func (l *linked) DebugAddresses() (addresses []uint64) {
	for i := range l.mappings {
		m := &l.mappings[i]
		if !m.biased || m.File.facts.debug == 0 {
			continue
		}
		addr := m.bias + m.File.facts.debug
		if (l.byLoader || m.File.key == l.program) && !slices.Contains(addresses, addr) {
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
	tried := map[*File]bool{}
	for i := range l.mappings {
		m := &l.mappings[i]
		if !m.biased || tried[m.File] || !strings.HasPrefix(path.Base(m.Path), "libc.so") {
			continue
		}
		tried[m.File] = true
		if db, err = m.File.threadDB(); !errors.Is(err, tlsresolve.ErrNoThreadDB) {
			return db, m.bias, err
		}
		if len(tried) == maxCandidates {
			break
		}
	}
	return tlsresolve.ThreadDB{}, 0, tlsresolve.ErrNoThreadDB
}

// threadDB is what a file says of itself to debuggers, read when it is first
// asked for.
type threadDB struct {
	mu    sync.Mutex
	known bool
	db    tlsresolve.ThreadDB
	err   error
}

func (f *File) threadDB() (tlsresolve.ThreadDB, error) {
	t := &f.debugging
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		return t.db, t.err
	}
	file, size, err := f.Open()
	if err != nil {
		return tlsresolve.ThreadDB{}, err
	}
	defer file.Close()
	e, err := elffile.New(file, size)
	if err != nil {
		return tlsresolve.ThreadDB{}, err
	}
	t.db, t.err = tlsresolve.ReadThreadDB(e)
	// What the file says stays so; that it could not be read may pass.
	var format *elffile.FormatError
	t.known = t.err == nil || errors.Is(t.err, tlsresolve.ErrNoThreadDB) ||
		errors.Is(t.err, tlsresolve.ErrLayout) || errors.As(t.err, &format)
	return t.db, t.err
}
