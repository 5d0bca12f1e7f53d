package cpython

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Bounds of what is read of one function.
const (
	maxNameChars  = 1024
	maxFileChars  = 4096
	maxTableBytes = 64 << 10
)

// function is a code object that was read.
type function struct {
	name, file string
	firstLine  int
	lines      lines // co_linetable
}

// Frames implements langruntime.Function.
func (f *function) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	line := 0
	if position > 0 {
		line = f.lines.at(position - 1)
	}
	return append(to, langruntime.Frame{Name: f.name, File: f.file, Line: line, StartLine: f.firstLine})
}

// Bytes implements langruntime.Function.
func (f *function) Bytes() int {
	return int(unsafe.Sizeof(*f)) + len(f.name) + len(f.file) + cap(f.lines)*int(unsafe.Sizeof(lineEnd{}))
}

// code is what a cookie is made of, and what leads to the rest.
type code struct {
	cookie            uint32
	name, file, table uint64
	firstLine         int
	nameLength        uint64
}

// Read implements langruntime.Process.
func (p *process) Read(mem langruntime.Memory, object uint64, cookie uint32) (langruntime.Function, error) {
	before, err := p.readCode(mem, object)
	if err != nil {
		return nil, err
	}
	if before.cookie != cookie {
		return nil, fmt.Errorf("%w: another one is there", langruntime.ErrGone)
	}
	f := &function{firstLine: before.firstLine}
	if f.name, err = p.readText(mem, before.name, maxNameChars); err != nil {
		return nil, err
	}
	if f.file, err = p.readText(mem, before.file, maxFileChars); err != nil {
		return nil, err
	}
	table, cut, err := p.readBytes(mem, before.table)
	if err != nil {
		return nil, err
	}
	if cut {
		table = wholeEntries(table)
	}
	f.lines = decodeLines(table, before.firstLine)
	after, err := p.readCode(mem, object)
	if err != nil {
		return nil, err
	}
	if after != before {
		return nil, fmt.Errorf("%w: it was replaced", langruntime.ErrGone)
	}
	return f, nil
}

// readCode reads a code object as the sampling programs do: read_python_code of pythonread.bpf.h.
func (p *process) readCode(mem langruntime.Memory, object uint64) (code, error) {
	of := &p.process
	b := make([]byte, of.CodeBytes)
	if err := read(mem, b, object); err != nil {
		return code{}, err
	}
	if word(b, int(of.ObjectType)) != of.CodeType || !p.referred(b) {
		return code{}, fmt.Errorf("%w: no code object, or a freed one", langruntime.ErrGone)
	}
	c := code{
		name:      word(b, int(of.CodeQualname)),
		file:      word(b, int(of.CodeFilename)),
		table:     word(b, int(of.CodeLinetable)),
		firstLine: int(int32(binary.LittleEndian.Uint32(b[of.CodeFirstLine:]))),
	}
	var head [24]byte // length, hash, state
	if err := read(mem, head[:], c.name+p.headerBytes()); err != nil {
		return code{}, err
	}
	c.nameLength = word(head[:], 0)
	text := c.name + uint64(of.WideOffset)
	state := stateOf(uint32(word(head[:], textState)))
	if state.ascii() {
		text = c.name + uint64(of.TextOffset)
	}
	hash := object
	for _, w := range [...]uint64{
		word(b, int(p.headerBytes())), uint64(uint32(c.firstLine)), c.name, c.file, c.table, c.nameLength,
	} {
		hash = record.Mix(hash, w)
	}
	n := c.nameLength * state.charBytes()
	hash, err := hashText(mem, hash, text, min(n, record.PythonNameBytes))
	if err == nil && n > record.PythonNameBytes {
		hash, err = hashText(mem, hash, text+n-record.PythonNameBytes, record.PythonNameBytes)
	}
	c.cookie = uint32(hash >> 32)
	return c, err
}

// hashText goes on with n bytes of a text, at most PythonNameBytes, as python_hash of pythonread.bpf.h does.
func hashText(mem langruntime.Memory, hash, text, n uint64) (uint64, error) {
	var b [record.PythonNameBytes]byte
	if err := read(mem, b[:n], text); err != nil {
		return 0, err
	}
	for at := 0; at < len(b); at += 8 {
		hash = record.Mix(hash, word(b[:], at))
	}
	return hash, nil
}
