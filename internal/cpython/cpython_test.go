package cpython

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

var errFault = errors.New("bad address")

// memory is what a process has from base on.
type memory struct {
	base  uint64
	bytes []byte
}

func (m *memory) ReadAt(p []byte, addr uint64) error {
	at := addr - m.base
	if at > uint64(len(m.bytes)) || uint64(len(p)) > uint64(len(m.bytes))-at {
		return errFault
	}
	copy(p, m.bytes[at:])
	return nil
}

func (m *memory) put(addr uint64, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(m.bytes[addr-m.base+8*uint64(i):], w)
	}
}

// Places in the memory of tests.
const (
	base      = 0x7f0000000000
	codeAt    = base
	nameAt    = base + 0x400
	fileAt    = base + 0x800
	tableAt   = base + 0xc00
	asciiText = 1<<2 | 1<<5 | 1<<6 // kind 1, compact, ASCII
)

func newMemory(name, file string, table []byte) *memory {
	return newMemoryOf(opened(layout312()), name, file, table)
}

// newMemoryOf has a code object of a process.
func newMemoryOf(l *process, name, file string, table []byte) *memory {
	m := &memory{base, make([]byte, 0x2000+len(table))}
	p, header := l.process, uint64(l.process.ObjectType)+8
	m.put(codeAt+uint64(p.CodeFilename), fileAt)
	m.put(codeAt+uint64(p.CodeQualname), nameAt)
	m.put(codeAt+uint64(p.CodeLinetable), tableAt)
	binary.LittleEndian.PutUint32(m.bytes[p.CodeFirstLine:], 10)
	for at, text := range map[uint64]string{nameAt: name, fileAt: file} {
		m.put(at+header, uint64(len(text)), 0, asciiText)
		copy(m.bytes[at-base+uint64(p.TextOffset):], text)
	}
	m.put(tableAt+header, uint64(len(table)))
	copy(m.bytes[tableAt-base+header+bytesText:], table)
	l.refer(m)
	m.put(codeAt+uint64(p.ObjectType), p.CodeType, 77)
	return m
}

// refer gives the code object a reference.
func (p *process) refer(m *memory) {
	if p.process.ObjectType == objectTypeFreeThreaded {
		binary.LittleEndian.PutUint32(m.bytes[localReferences:], 1)
	} else {
		m.put(codeAt, 1)
	}
}

// codeType is where the file of tests has PyCode_Type, and bias what a process adds.
const (
	codeType = 0x5000
	bias     = 0x10000
)

// opened is the CPython of a process that has a layout.
func opened(l *Layout) *process {
	l.process.CodeType = codeType
	p, err := l.Open(nil, bias)
	if err != nil {
		panic(err)
	}
	return p.(*process)
}

func layout312() *Layout { return &Layout{version: 0x030c01f0, process: process312()} }

// layoutFreeThreaded is that of a build without the global interpreter lock.
func layoutFreeThreaded(t *testing.T) *Layout {
	t.Helper()
	const version = 0x030d0ff0
	p, err := processOf(debugBlockFreeThreaded(version), version)
	require.NoError(t, err)
	return &Layout{version: version, process: p}
}

func TestRead(t *testing.T) {
	everyBuild(t, testRead)
}

// everyBuild runs a test with the two layouts of objects.
func everyBuild(t *testing.T, test func(t *testing.T, l *process)) {
	for name, l := range map[string]*Layout{"3.12": layout312(), "free-threaded 3.13": layoutFreeThreaded(t)} {
		t.Run(name, func(t *testing.T) { test(t, opened(l)) })
	}
}

func testRead(t *testing.T, l *process) {
	t.Helper()
	m := newMemoryOf(l, "Class.method", "/srv/app.py", []byte{0x80 | locationOneLine<<3 + 8, 0, 0}) // 1 unit, one line down
	known, err := l.readCode(m, codeAt)
	require.NoError(t, err)
	f, err := l.Read(m, codeAt, known.cookie)
	require.NoError(t, err)
	require.Equal(t, langruntime.Frame{Name: "Class.method", File: "/srv/app.py", Line: 11, StartLine: 10}, f.Frames(nil, 1)[0])
	require.Zero(t, f.Frames(nil, 0)[0].Line, "a position that is not known")
	require.Zero(t, f.Frames(nil, 2)[0].Line, "behind the table")
	require.Positive(t, f.Bytes())

	// All that the cookie is made of tells another object.
	for what, change := range map[string]func(m *memory){
		"size":       func(m *memory) { m.put(codeAt+l.headerBytes(), 78) },
		"first line": func(m *memory) { m.bytes[l.process.CodeFirstLine]++ },
		"file":       func(m *memory) { m.put(codeAt+uint64(l.process.CodeFilename), nameAt) },
		"table":      func(m *memory) { m.put(codeAt+uint64(l.process.CodeLinetable), fileAt) },
		"name":       func(m *memory) { m.bytes[nameAt-base+uint64(l.process.TextOffset)]++ },
		"length":     func(m *memory) { m.put(nameAt+l.headerBytes(), 11) },
		"unmapped":   func(m *memory) { m.put(codeAt+uint64(l.process.CodeQualname), 8) },
	} {
		changed := newMemoryOf(l, "Class.method", "/srv/app.py", nil)
		change(changed)
		_, err := l.Read(changed, codeAt, known.cookie)
		require.ErrorIs(t, err, langruntime.ErrGone, what)
	}
	_, err = l.Read(m, 16, known.cookie)
	require.ErrorIs(t, err, langruntime.ErrGone)
}

func TestText(t *testing.T) {
	l := layout312()
	wide := func(kind uint64, b ...byte) *memory {
		m := &memory{base, make([]byte, 0x100)}
		m.put(base+l.headerBytes(), uint64(len(b))/kind, 0, kind<<2|1<<5)
		copy(m.bytes[l.process.WideOffset:], b)
		return m
	}
	for want, m := range map[string]*memory{
		"größe":  wide(1, 'g', 'r', 0xf6, 0xdf, 'e'),
		"名x":     wide(2, 0x0d, 0x54, 'x', 0),
		"🐍":      wide(4, 0x0d, 0xf4, 1, 0),
		"\ufffd": wide(2, 0, 0xd8), // half of a pair
		"a\ufffd": func() *memory {
			m := newMemory("a\n", "", nil)
			m.base, m.bytes = base, m.bytes[nameAt-base:]
			return m
		}(),
		"\ufffd\ufffd": wide(4, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x11, 0),
	} {
		got, err := l.readText(m, base, 10)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	cut, err := l.readText(newMemory(strings.Repeat("n", 900), "", nil), nameAt, 20)
	require.NoError(t, err)
	require.Len(t, cut, 20)
	for _, state := range []uint64{0, 1 << 2, 1<<5 | 1<<6, 2<<2 | 1<<5 | 1<<6, 7<<2 | 1<<5} {
		m := wide(1, 'x')
		m.put(base+l.headerBytes()+textState, state)
		_, err := l.readText(m, base, 10)
		require.ErrorIs(t, err, langruntime.ErrGone, state)
	}
}

// The state has the kind behind 2 bits or behind 16.
func TestState(t *testing.T) {
	require.True(t, stateOf(3|asciiText).ascii())
	require.True(t, stateOf(3|asciiText<<14).ascii())
	require.True(t, stateOf(0xffff0000|asciiText).compact())
	require.EqualValues(t, 2, stateOf(2<<2).charBytes())
}

// debugBlock is what CPython 3.13.0 and 3.14.10 on x86-64 have in their files.
func debugBlock(version uint64) []byte { return debugBlockOf(version, 0) }

// debugBlockFreeThreaded is that of 3.13.15 without the global interpreter lock.
func debugBlockFreeThreaded(version uint64) []byte {
	b := debugBlockOf(version, 16)
	b[8*debugFreeThreaded] = 1
	return b
}

// debugBlockOf has objects whose header is so many bytes larger.
func debugBlockOf(version, larger uint64) []byte {
	w, code := debugWords313(), uint64(200)
	if version>>16 == version314 {
		w, code = debugWords314(), 208
	}
	b := make([]byte, debugOffsetsBytes)
	copy(b, cookie)
	put := func(n int, v uint64) { binary.LittleEndian.PutUint64(b[8*n:], v) }
	put(debugVersion, version)
	for n, v := range map[int]uint64{
		w.interpretersHead: 632, w.interpreterNext: 7264, w.threadsHead: 7344,
		w.threadNext: 8, w.currentFrame: 72, w.nativeThreadID: 160,
		w.framePrevious: 8, w.frameCode: 0, w.frameInstruction: 56, w.owner: 70,
		w.filename: larger + 112, w.qualname: larger + 128, w.linetable: larger + 136,
		w.firstLine: larger + 68, w.code: larger + code,
		w.objectType: larger + 8, w.bytesSize: larger + 16, w.bytesText: larger + 32,
		w.textState: larger + 32, w.textLength: larger + 16, w.asciiBytes: larger + 40,
	} {
		put(n, v)
	}
	return b
}

func TestDebugOffsets(t *testing.T) {
	for _, block := range [][]byte{debugBlock(0x030d00f0), debugBlock(0x030e0af0), debugBlockFreeThreaded(0x030d0ff0)} {
		version := binary.LittleEndian.Uint64(block[8*debugVersion:])
		larger := 16 * uint64(block[8*debugFreeThreaded])
		p, err := processOf(block, version)
		require.NoError(t, err)
		require.EqualValues(t, 632, p.Interpreters)
		require.EqualValues(t, larger+56, p.WideOffset)
		require.EqualValues(t, larger+8, p.ObjectType)
		requireInBounds(t, &p)
		for n := range debugOffsetsBytes / 8 {
			b := bytes.Clone(block)
			binary.LittleEndian.PutUint64(b[8*n:], 1<<40)
			if p, err := processOf(b, version); err == nil {
				requireInBounds(t, &p)
				require.Zero(t, binary.LittleEndian.Uint64(block[8*n:]), n) // unused
			}
		}
	}
	// Whatever size code objects are said to have, reading one stays within.
	for code := uint64(0); code <= record.PythonCodeBytes; code += 8 {
		for _, block := range [][]byte{debugBlock(0x030d00f0), debugBlockFreeThreaded(0x030d0ff0)} {
			w := debugWords313()
			for _, n := range []int{w.code, w.filename, w.qualname, w.linetable, w.firstLine} {
				binary.LittleEndian.PutUint64(block[8*n:], 0)
			}
			binary.LittleEndian.PutUint64(block[8*w.code:], code)
			version := binary.LittleEndian.Uint64(block[8*debugVersion:])
			p, err := processOf(block, version)
			if err != nil {
				continue
			}
			requireInBounds(t, &p)
			l := &Layout{version: version, process: p}
			m := newMemoryOf(opened(l), "", "", nil)
			_, _ = opened(l).readCode(m, codeAt)
		}
	}
	// What the file says of its build and of its objects has to be the same.
	for _, b := range [][]byte{debugBlock(0x030d00f0), debugBlockFreeThreaded(0x030d00f0)} {
		b[8*debugFreeThreaded] ^= 1
		_, err := processOf(b, 0x030d00f0)
		require.ErrorIs(t, err, langruntime.ErrUnreadable)
	}
	_, err := processOf(debugBlockFreeThreaded(0x030e00f0), 0x030e00f0)
	require.ErrorIs(t, err, errFreeThreaded)
	require.ErrorIs(t, err, langruntime.ErrUnsupported)
	_, err = processOf(debugBlock(0x030d00f0), 0x030e00f0)
	require.ErrorIs(t, err, langruntime.ErrUnreadable)
}

// requireInBounds makes sure of what the sampling programs rely on.
func requireInBounds(t *testing.T, p *record.PythonProcess) {
	t.Helper()
	require.LessOrEqual(t, p.CodeBytes, uint16(record.PythonCodeBytes))
	for _, at := range []uint16{p.CodeFilename, p.CodeQualname, p.CodeLinetable} {
		require.Zero(t, at%8)
		require.LessOrEqual(t, at+8, p.CodeBytes)
	}
	require.LessOrEqual(t, p.CodeFirstLine+4, p.CodeBytes)
	require.Zero(t, p.CodeFirstLine%4)
	require.Zero(t, p.ObjectType%8)
	require.LessOrEqual(t, uint16(p.ObjectType)+16, p.CodeBytes)
	for _, at := range []uint8{p.FrameCode, p.FramePrevious, p.FrameInstruction} {
		require.Zero(t, at%8)
		require.LessOrEqual(t, int(at)+8, record.PythonFrameBytes)
	}
	require.Less(t, int(p.FrameOwner), record.PythonFrameBytes)
	require.Less(t, int(p.FrameEntry), record.PythonFrameBytes)
}

func TestTablesInBounds(t *testing.T) {
	for _, p := range []record.PythonProcess{process311(), process312()} {
		requireInBounds(t, &p)
	}
}

func TestProcess(t *testing.T) {
	l := layout312()
	p := opened(l).Record()
	require.Equal(t, record.RuntimeCPython, p.Kind)
	require.EqualValues(t, codeType+bias, p.Python.CodeType)
	require.EqualValues(t, bias+40, p.Python.Interpreters)
	require.EqualValues(t, codeType, l.process.CodeType, "of the file")
	require.Equal(t, "3.12.1", l.Version())
}

func FuzzDebugOffsets(f *testing.F) {
	f.Add(debugBlock(0x030d00f0), uint64(0x030d00f0))
	f.Add(debugBlock(0x030e0af0), uint64(0x030e0af0))
	f.Add(debugBlockFreeThreaded(0x030d0ff0), uint64(0x030d0ff0))
	f.Fuzz(func(t *testing.T, block []byte, version uint64) {
		if p, err := processOf(block, version); err == nil {
			requireInBounds(t, &p)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(newMemory("name", "file", []byte{0x80, 0}).bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		l, m := opened(layout312()), &memory{base, b}
		c, err := l.readCode(m, codeAt)
		if err != nil {
			return
		}
		fn, err := l.Read(m, codeAt, c.cookie)
		if err != nil {
			return
		}
		for position := range uint32(8) {
			got := fn.Frames(nil, position)[0]
			if !utf8.ValidString(got.Name) || !utf8.ValidString(got.File) {
				t.Fatalf("%q %q", got.Name, got.File)
			}
		}
	})
}
