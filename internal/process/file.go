//go:build linux

package process

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// File is a file that processes map executable: what is known of it is read
// once and shared.
type File struct {
	key  procfs.FileID
	path string // where it was first seen
	opts *fileOptions

	once  sync.Once
	err   error // of reading it; not an ELF file, and so on
	facts facts

	debugging threadDB // of a C library
	vdso      *vdso    // if it is that
	rows      fileRows // of the first one

	uid    uint32         // whose it is
	kernel record.FileKey // what it is to the kernel, if known
	first  *File          // that is the same to the kernel, if it is not this one
	closed uint64         // version of places when it could not be opened for its rows; guarded by rows.mu

	users  atomic.Int32 // processes that map it
	others atomic.Int32 // processes that map a file whose first one it is
	places places
	logged atomic.Uint32 // bits of states that were logged, by ABI
	broken atomic.Bool   // counted as one whose label sources cannot be read
	hash   atomic.Pointer[[sha256.Size]byte]
}

type fileOptions struct {
	fs          procfs.FS
	descriptors *descriptors
	name        func(*os.File) (record.FileKey, error) // Options.NameFile
}

// facts are what there is to know of an ELF file.
type facts struct {
	layout     layout
	interp     string
	debug      uint64 // virtual address of the value of DT_DEBUG, 0 if nothing fills it
	executable bool   // a program
	buildID    string
	goBuildID  string
	htlHash    string
	plans      []plan
	v8         v8heap.Layout
	v8Err      error // why there is no v8; v8heap.ErrNoV8 if there is nothing of it
}

// plan is how to find one kind of labels. err says why there is no way though
// the file defines the symbol.
type plan struct {
	abi   record.ABI
	plan  tlsresolve.Plan
	err   error
	model string
	// version is the virtual address of custom_labels_abi_version, 0 if there is none.
	version    uint64
	goroutines golabels.Plan // instead of plan; record.ABIGo only
}

// versionSymbol names an int that tells v0 and v1 apart.
const versionSymbol = "custom_labels_abi_version"

// Key identifies the file's contents; it can be used as the key of caches.
func (f *File) Key() procfs.FileID { return f.origin().key }

// Path returns a path under which the file was seen. Valid UTF-8.
func (f *File) Path() string { return f.path }

// UID returns the user who owns the file, and may so write what he likes into it.
func (f *File) UID() uint32 { return f.uid }

// PID returns the process of a user in a container that was seen last to map the file; 0 if
// there was none.
func (f *File) PID(uid uint32, container string) int {
	for _, at := range f.places.all() {
		if at.owner == (owner{uid, container}) {
			return at.pid
		}
	}
	return 0
}

// BuildIDGNU returns the GNU build id in hexadecimal, "" if there is none.
func (f *File) BuildIDGNU() string { return f.facts.buildID }

// BuildIDGo returns the build id that Go's linker wrote, "" if there is none. Valid UTF-8.
func (f *File) BuildIDGo() string { return f.facts.goBuildID }

// HTLHash returns process.executable.build_id.htlhash as OpenTelemetry defines
// it: a hash of the file's head, tail and length. "" if it could not be read.
func (f *File) HTLHash() string { return f.facts.htlHash }

// Open opens the file for reading; the caller closes it. It works for a while
// after the last process that maps the file has exited. It may block on the
// file's filesystem.
func (f *File) Open() (*os.File, int64, error) {
	if f.vdso != nil {
		return f.vdso.open()
	}
	file, err := f.opts.descriptors.open(f)
	if err != nil {
		return nil, 0, err
	}
	if file != nil {
		return file, f.key.Size, nil
	}
	err = os.ErrNotExist
	for _, at := range f.places.all() {
		if file, err = f.openAt(&at); err == nil {
			// A file without a kept descriptor is still readable now.
			_ = f.opts.descriptors.keep(f, file)
			return file, f.key.Size, nil
		}
	}
	return nil, 0, fmt.Errorf("open %q: %w", f.path, err)
}

func (f *File) openAt(at *place) (*os.File, error) {
	file, id, err := f.opts.fs.OpenMapped(at.pid, at.mapping)
	if err != nil {
		return nil, err
	}
	if id != f.key {
		file.Close()
		return nil, procfs.ErrReplaced
	}
	return file, nil
}

// load reads the file once, and reports whether that was this call. Others that need it wait.
// firstOf returns the first file that is the same to the kernel, which may be this one.
func (f *File) load(firstOf func(*File) *File) (mine bool) {
	f.once.Do(func() {
		mine = true
		file, size, err := f.Open()
		if err != nil {
			f.err = err
			return
		}
		defer file.Close()
		var st unix.Stat_t
		if f.err = unix.Fstat(int(file.Fd()), &st); f.err != nil {
			return
		}
		f.uid = st.Uid
		if f.kernel = f.named(file); f.kernel != (record.FileKey{}) {
			if first := firstOf(f); first != f {
				mine = first.load(firstOf)
				f.first, f.facts, f.err = first, first.facts, first.err
				return
			}
		}
		f.facts, f.err = readFacts(file, size)
	})
	return mine
}

// origin is the file that stands for all with the same contents.
func (f *File) origin() *File {
	if f.first != nil {
		return f.first
	}
	return f
}

// named returns what an open file is to the kernel, zero if that cannot be known.
func (f *File) named(file *os.File) record.FileKey {
	if f.opts.name == nil || f.vdso != nil {
		return record.FileKey{}
	}
	key, err := f.opts.name(file)
	if err != nil || int64(key.Size) != f.key.Size {
		return record.FileKey{}
	}
	return key
}

// unreadable reports whether the file says that it defines labels, or may, but is
// too damaged to find them.
func (f *File) unreadable() bool {
	for i := range f.facts.plans {
		if stateOf(f.facts.plans[i].err) == SourceUnreadable {
			return true
		}
	}
	return false
}

func readFacts(r io.ReaderAt, size int64) (facts, error) {
	hash, err := htlHash(r, size)
	if err != nil {
		return facts{}, err
	}
	e, err := elffile.New(r, size)
	if err != nil {
		return facts{htlHash: hash}, err
	}
	k := facts{layout: layoutOf(e), interp: e.Interp(), executable: e.IsExecutable(), htlHash: hash}
	if k.interp != "" { // a static PIE has a place for it too, but no loader
		k.debug, _ = e.DebugAddress()
	}
	// A build id that cannot be read is no reason to give up labels.
	k.buildID, _ = e.BuildID()
	id, _ := e.GoBuildID()
	k.goBuildID = validUTF8(id)
	k.v8, k.v8Err = v8heap.LayoutOf(e)
	for abi := record.ABIV0; abi < record.NumABIs; abi++ {
		if abi.Symbol() == "" {
			continue
		}
		p := plan{abi: abi}
		p.plan, p.err = tlsresolve.NewPlan(e, abi.Symbol())
		if errors.Is(p.err, tlsresolve.ErrNoSymbol) {
			continue
		}
		if p.err == nil {
			p.model = p.plan.Model().String()
			p.version, p.err = versionAddress(e, abi)
		}
		k.plans = append(k.plans, p)
	}
	if k.executable {
		if p, ok := goroutines(e); ok {
			k.plans = append(k.plans, p)
		}
	}
	return k, nil
}

// goroutines plans how to read the labels of a Go program's goroutines.
func goroutines(e *elffile.File) (p plan, ok bool) {
	p = plan{abi: record.ABIGo}
	if p.goroutines, p.err = golabels.NewPlan(e); errors.Is(p.err, golabels.ErrNotGo) {
		return plan{}, false
	}
	return p, true
}

// versionAddress finds the version that goes with a kind of custom labels.
func versionAddress(e *elffile.File, abi record.ABI) (uint64, error) {
	if abi.ThreadContext() {
		return 0, nil
	}
	sym, ok, err := e.DynamicSymbol(versionSymbol)
	if err == nil && !ok {
		sym, ok, err = e.IntSymbol(versionSymbol)
	}
	if err != nil || !ok {
		return 0, err
	}
	return sym.Value, nil
}

// htlPart is the length of head and tail in an HTL hash.
const htlPart = 4096

// htlHash computes hex(SHA256(head ‖ tail ‖ BigEndianUint64(length))[:16]).
func htlHash(r io.ReaderAt, size int64) (string, error) {
	h := sha256.New()
	buf := make([]byte, min(size, htlPart))
	for _, off := range [2]int64{0, size - int64(len(buf))} {
		if n, err := r.ReadAt(buf, off); n < len(buf) {
			return "", fmt.Errorf("hash file: %w", err)
		}
		h.Write(buf)
	}
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(size))
	h.Write(length[:])
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}
