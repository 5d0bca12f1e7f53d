//go:build linux

package executable

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// Facts are what there is to know of an ELF file.
type Facts struct {
	Layout  Layout
	Interp  string // the dynamic loader that it asks for, "" if none
	Debug   uint64 // virtual address of the value of DT_DEBUG, 0 if nothing fills it
	Program bool   // rather than a library

	BuildIDGNU string // in hexadecimal, "" if there is none
	BuildIDGo  string // valid UTF-8, "" if there is none
	HTLHash    string // of OpenTelemetry: head, tail and length; "" if it could not be read

	Plans []Plan
	V8    v8heap.Layout
	V8Err error // why there is no V8; v8heap.ErrNoV8 if there is nothing of it

	Runtime    langruntime.Runtime // nil: none that is supported
	RuntimeErr error               // why there is none; langruntime.ErrNone if there is nothing of one

	// Fault is why not all of the file could be read, which may pass; nil: it could. What is not
	// known because of it is no fact.
	Fault error
}

// bytes estimates what they take beside their own size.
func (f *Facts) bytes() int {
	sum := cap(f.Layout.Loads)*int(unsafe.Sizeof(elffile.Segment{})) + cap(f.Plans)*int(unsafe.Sizeof(Plan{}))
	return sum + len(f.Interp) + len(f.BuildIDGNU) + len(f.BuildIDGo) + len(f.HTLHash)
}

// A Plan is how to find one kind of labels. Err says why there is no way though
// the file defines the symbol.
type Plan struct {
	ABI   record.ABI
	TLS   tlsresolve.Plan
	Model string // TLS model
	Err   error
	// Version is the virtual address of custom_labels_abi_version, 0 if there is none; FileVersion what the file has
	// there, -1 if that is not known.
	Version     uint64
	FileVersion int64
	Goroutines  golabels.Plan // instead of TLS; record.ABIGo only
}

// VersionSymbol names an int that tells v0 and v1 apart.
const VersionSymbol = "custom_labels_abi_version"

// ReadFacts reads what there is to know of a file. Of one that is no ELF file that is HTLHash. It ends with the context,
// whose error it returns, and then nothing is known.
func ReadFacts(ctx context.Context, r io.ReaderAt, size int64) (Facts, error) {
	// Who asks a file may do without what it cannot read, so that no error comes of a fault.
	in := &elffile.FaultReader{ReaderAt: r}
	k, err := readFacts(ctx, in, size)
	if ctx.Err() != nil {
		return Facts{}, ctx.Err()
	}
	k.Fault = in.Fault
	return k, err
}

func readFacts(ctx context.Context, r io.ReaderAt, size int64) (Facts, error) {
	hash, err := htlHash(r, size)
	if err != nil {
		return Facts{}, err
	}
	e, err := elffile.New(r, size)
	if err != nil {
		return Facts{HTLHash: hash}, err
	}
	runtime.LockOSThread() // whose CPU time is looked at
	defer runtime.UnlockOSThread()
	pace := budget.FilePace(threadTime)
	e.Pace(func() error { return cmp.Or(ctx.Err(), pace()) })
	k := Facts{Layout: layoutOf(e), Interp: e.Interp(), Program: e.IsExecutable(), HTLHash: hash}
	if k.Interp != "" { // a static PIE has a place for it too, but no loader
		k.Debug, _ = e.DebugAddress()
	}
	// A build id that cannot be read is no reason to give up labels.
	k.BuildIDGNU, _ = e.BuildID()
	id, _ := e.GoBuildID()
	k.BuildIDGo = validUTF8(id)
	k.V8, k.V8Err = v8heap.LayoutOf(e)
	k.Runtime, k.RuntimeErr = runtimeOf(e)
	for abi := record.ABIV0; abi < record.NumABIs; abi++ {
		if abi.Symbol() == "" {
			continue
		}
		p := Plan{ABI: abi}
		p.TLS, p.Err = tlsresolve.NewPlan(e, abi.Symbol())
		if errors.Is(p.Err, tlsresolve.ErrNoSymbol) {
			continue
		}
		if p.Err == nil {
			p.Model = p.TLS.Model().String()
			p.Version, p.Err = versionAddress(e, abi)
			p.FileVersion = fileVersion(e, p.Version)
		}
		k.Plans = append(k.Plans, p)
	}
	if k.Program {
		if p, ok := goroutines(e); ok {
			k.Plans = append(k.Plans, p)
		}
	}
	return k, nil
}

// goroutines plans how to read the labels of a Go program's goroutines.
func goroutines(e *elffile.File) (p Plan, ok bool) {
	p = Plan{ABI: record.ABIGo}
	if p.Goroutines, p.Err = golabels.NewPlan(e); errors.Is(p.Err, golabels.ErrNotGo) {
		return Plan{}, false
	}
	return p, true
}

// versionAddress finds the version that goes with a kind of custom labels.
func versionAddress(e *elffile.File, abi record.ABI) (uint64, error) {
	if abi.ThreadContext() {
		return 0, nil
	}
	sym, ok, err := e.DynamicSymbol(VersionSymbol)
	if err == nil && !ok {
		sym, ok, err = e.IntSymbol(VersionSymbol)
	}
	if err != nil || !ok {
		return 0, err
	}
	return sym.Value, nil
}

// fileVersion returns the int that a file has at a virtual address, where a process has it in the beginning; -1 if it
// has none.
func fileVersion(e *elffile.File, vaddr uint64) int64 {
	var b [4]byte
	for s := range e.Loads() {
		if d := vaddr - s.Vaddr; vaddr >= s.Vaddr && d >= s.Filesz && d < s.Memsz && s.Memsz-d >= uint64(len(b)) {
			return 0
		}
	}
	if vaddr == 0 || e.ReadVaddr(b[:], vaddr) != nil {
		return -1
	}
	return int64(binary.LittleEndian.Uint32(b[:]))
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
