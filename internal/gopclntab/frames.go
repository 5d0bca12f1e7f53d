package gopclntab

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// maxInlined bounds the calls that are inlined into each other. Go's compiler stops
// long before.
const maxInlined = 128

// Frame is a function at an address. Strings are valid UTF-8.
type Frame struct {
	Function  string
	File      string // as the compiler was told; "" if not known
	Line      int    // of the address or, in a caller, of the call; 0 if not known
	StartLine int    // of the declaration; 0 if not known
	Foreign   bool   // see Func
}

// Frames appends the functions that an address of an instruction stands for, the
// innermost inlined one first, the one of the linker last. It appends nothing if
// there is no Go function at the address. With an error there may be frames, where the table
// takes too many steps to say more; the error is ErrSteps where it will not say anything again.
func (r *Reader) Frames(to []Frame, pc uint64) ([]Frame, error) {
	r.steps.address = 0
	f, ok, err := r.Func(pc)
	if err != nil || !ok {
		return to, err
	}
	start := len(to)
	outer := pc
	t, hasTree, err := r.tree(&f)
	if err != nil {
		return to, err
	}
	if hasTree && r.t.inlinedBytes > 0 {
		if to, outer, err = r.inlined(to, &f, t, pc); err != nil {
			// Of a tree that makes no sense, nothing is believed.
			to, outer = to[:start], pc
		}
	}
	fr := Frame{StartLine: f.StartLine, Foreign: f.Foreign}
	if fr.Function, err = r.name(f.name); err != nil {
		return to[:start], err
	}
	// Without its line, a function is better than nothing.
	fr.File, fr.Line, _ = r.line(&f, outer)
	return append(to, fr), r.steps.err()
}

// call is runtime.inlinedCall.
type call struct {
	name     uint32
	parentPC uint32 // of the call, from the function's entry
	line     uint32 // where the called function begins
}

// inlined appends the calls that are inlined at an address. outer is the address in
// the function itself that they come down to.
func (r *Reader) inlined(to []Frame, f *Func, t tree, pc uint64) (_ []Frame, outer uint64, err error) {
	for n := 0; ; n++ {
		i, err := r.value(t.index, f, pc)
		if err != nil || i < 0 {
			return to, pc, err
		}
		if n == maxInlined {
			return to, pc, &elffile.FormatError{Off: r.t.inlined, Msg: "depth of inlined calls", Val: n}
		}
		c, err := r.call(t, uint64(i))
		if err != nil {
			return to, pc, err
		}
		fr := Frame{StartLine: int(int32(c.line))}
		if fr.Function, err = r.wholeName(c.name); err != nil {
			return to, pc, err
		}
		fr.File, fr.Line, _ = r.line(f, pc)
		to = append(to, fr)
		pc = f.Entry + uint64(c.parentPC)
		if pc >= f.End {
			return to, pc, &elffile.FormatError{Off: r.t.inlined, Msg: "inlined call outside of its function", Val: c.parentPC}
		}
	}
}

// call reads an entry of a tree of inlined calls.
func (r *Reader) call(t tree, i uint64) (call, error) {
	// funcID u8, pad [3]u8, name i32, parentPc i32, startLine i32
	size, name, parent := uint64(16), 4, 8
	if !r.t.current {
		// parent i16, funcID u8, pad u8, file i32, line i32, name i32, parentPc i32
		size, name, parent = 20, 12, 16
	}
	var b [20]byte
	off := uint64(t.off) + i*size
	if off+size > r.t.inlinedBytes {
		return call{}, &elffile.FormatError{Off: r.t.inlined, Msg: "inlined call outside of the file", Val: off}
	}
	if err := r.pages.fill(b[:size], r.t.inlined+off); err != nil {
		return call{}, err
	}
	c := call{name: binary.LittleEndian.Uint32(b[name:]), parentPC: binary.LittleEndian.Uint32(b[parent:])}
	if r.t.current {
		c.line = binary.LittleEndian.Uint32(b[12:])
	}
	return c, nil
}

// wholeName is name for offsets that are not known to be those of names: it demands
// that one begins there.
func (r *Reader) wholeName(off uint32) (string, error) {
	s, err := r.name(off)
	if err != nil || off == 0 {
		return s, err
	}
	before, err := r.pages.at(r.t.off + r.t.names + uint64(off) - 1)
	if err != nil {
		return "", err
	}
	if before[0] != 0 || s == "" {
		return "", &elffile.FormatError{Off: r.t.off + r.t.names, Msg: "name that begins inside of another", Val: off}
	}
	return s, nil
}

// line returns file and line of an address.
//
// A function's files are numbers, which are indexes in the part of the table of its
// compilation unit, which has offsets of names.
func (r *Reader) line(f *Func, pc uint64) (file string, line int, err error) {
	n, err := r.value(f.file, f, pc)
	if err != nil {
		return "", 0, err
	}
	l, err := r.value(f.line, f, pc)
	if err != nil || n < 0 || l < 0 {
		return "", 0, err
	}
	var b [4]byte
	if err := r.read(b[:], r.t.units, r.t.header.files, 4*(uint64(f.unit)+uint64(n))); err != nil {
		return "", 0, err
	}
	off := binary.LittleEndian.Uint32(b[:])
	if off == noFuncdata {
		return "", int(l), nil // the linker found no use of the file
	}
	file, err = r.text(r.t.header.files, r.t.header.values, uint64(off))
	return file, int(l), err
}
