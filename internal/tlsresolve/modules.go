package tlsresolve

import (
	"debug/elf"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// ProcessFiles tells a Modules of files of its process. Each method is called
// at most once, and only when a location depends on the answer.
type ProcessFiles interface {
	// DebugAddresses returns where in memory the program has the word that
	// leads to its loader's struct r_debug (elffile.File.DebugAddress plus the
	// load bias); several when it is not known which file is the program.
	DebugAddresses() []uint64

	// ThreadDB returns what the process's glibc says of its structures, and
	// the load bias of libc.so.6. The error is one of ReadThreadDB, where
	// ErrNoThreadDB also stands for a process without such a library.
	ThreadDB() (db ThreadDB, bias uint64, err error)
}

// Modules finds out about the TLS modules of one process from what its dynamic
// loader keeps in memory. It reads when asked and remembers some of that, so it
// is good for one look at a process: make a new one for the next. It is not
// safe for concurrent use.
type Modules struct {
	files ProcessFiles

	asked  bool // for db
	db     ThreadDB
	dbBias uint64
	dbErr  error

	listed   bool
	links    map[object]uint64
	linksErr error
}

// NewModules returns the modules of a process. It reads nothing yet.
func NewModules(files ProcessFiles) *Modules { return &Modules{files: files} }

// object identifies a loaded file by the fields of its struct link_map.
type object struct{ base, dynamic uint64 }

func (p Plan) object(bias uint64) object { return object{bias, bias + p.dynamicVaddr} }

func (m *Modules) threadDB() (*ThreadDB, error) {
	if !m.asked {
		m.asked = true
		m.db, m.dbBias, m.dbErr = m.files.ThreadDB()
	}
	return &m.db, m.dbErr
}

// resolveModule finds the module of a library in which no relocation leads to
// the variable, by way of the loader's list of libraries.
func (p Plan) resolveModule(mem Memory, bias uint64, env Target) (Location, error) {
	if env.Modules == nil {
		return Location{}, ErrNoRelocation
	}
	module, err := env.Modules.find(mem, p, bias, env.Libc)
	if err != nil {
		return Location{}, err
	}
	return p.dynamic(mem, env, module, int64(p.value), 0)
}

// find returns the module id of a file at its place in the process.
func (m *Modules) find(mem Memory, p Plan, bias uint64, libc Libc) (module uint64, err error) {
	switch libc {
	case Glibc:
		db, err := m.threadDB()
		if errors.Is(err, ErrNoThreadDB) {
			return 0, fmt.Errorf("%w: %w", ErrNoRelocation, err)
		}
		if err != nil {
			return 0, err
		}
		link, err := m.link(mem, p.object(bias))
		if err != nil {
			return 0, err
		}
		if module, err = readWord(mem, link+db.mapModule); err != nil {
			return 0, fmt.Errorf("read struct link_map: %w", err)
		}
	case Musl:
		link, err := m.link(mem, p.object(bias))
		if err != nil {
			return 0, err
		}
		tls, err := p.muslModule(mem, link, bias)
		if err != nil {
			return 0, err
		}
		module = tls.module
	default:
		return 0, ErrUnknownLibc
	}
	if module == 0 {
		return 0, fmt.Errorf("%w: library without a module id", ErrNotRelocated)
	}
	return module, nil
}

// glibc adds to a module's location what the loader knows: whether the block
// lies in static TLS, and else since which generation the id is this module's.
// generation is what is known of that so far.
func (m *Modules) glibc(mem Memory, machine elf.Machine, module uint64, offset int64, generation uint64) (Location, error) {
	db, err := m.threadDB()
	if errors.Is(err, ErrNoThreadDB) {
		return Location{Kind: record.TLSDTVGlibc, Offset: offset, Module: module, Generation: generation}, nil
	}
	if err != nil {
		return Location{}, err
	}
	slot, err := m.slotinfo(mem, db, module)
	if err != nil {
		return Location{}, err
	}
	tls, err := db.readLink(mem, slot.link)
	if err != nil {
		return Location{}, err
	}
	if tls.module != module {
		return Location{}, fmt.Errorf("%w: module %d being replaced", ErrNotRelocated, module)
	}
	if tls.static() {
		if machine == elf.EM_X86_64 {
			return static(machine, Glibc, offset-int64(tls.offset))
		}
		return static(machine, Glibc, offset+int64(tls.offset))
	}
	return Location{Kind: record.TLSDTVGlibc, Offset: offset, Module: module, Generation: max(generation, slot.generation)}, nil
}

// linkTLS is what struct link_map says of a library's TLS block.
type linkTLS struct{ module, offset uint64 }

// static reports whether the loader has given the block a place in static TLS:
// each thread has it there, whether its DTV says so or not. The offset is that
// of the block from the thread pointer, down on x86-64 and up on aarch64, or
// NO_TLS_OFFSET (0) or FORCED_DYNAMIC_TLS_OFFSET (-1).
func (t linkTLS) static() bool { return t.offset != 0 && t.offset != ^uint64(0) }

func (db *ThreadDB) readLink(mem Memory, link uint64) (t linkTLS, err error) {
	if t.module, err = readWord(mem, link+db.mapModule); err == nil {
		t.offset, err = readWord(mem, link+db.mapOffset)
	}
	if err != nil {
		return t, fmt.Errorf("read struct link_map: %w", err)
	}
	return t, nil
}
