package v8js

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// optimized makes code of an optimizing compiler: outer has inner put into it, from 100 on and
// on its line 4, and the call that goes on at 300 is inner's at 12, when outer was at 5. Its exit
// is at 804, that of a check at 800; of Maglev's code both are 500 before.
func (b *builder) optimized(kind uint8) (code uint64) {
	r := &b.l.release
	outer, _ := b.function("outer")
	inner, _ := b.function("inner")
	wrap := func(shared uint64) uint64 {
		if !r.wrapped {
			return shared
		}
		w := b.object(typeWrapper, 16)
		b.set(w, 8, shared)
		return w
	}
	list := make([]uint64, r.inline+entriesBehind+2*entryWords)
	list[deoptInlined] = smiOf(1)
	list[r.deoptLiterals] = b.words(typeWeakArray, wrap(inner), smiOf(1), wrap(outer)|2)
	list[r.deoptShared] = wrap(outer)
	inlinings := make([]byte, inliningBytes)
	binary.LittleEndian.PutUint64(inlinings, uint64(sourcePosition(b.or(16, 5), -1)))
	list[r.inline] = b.array(inlinings)
	list[r.inline+entriesBehind+2] = smiOf(-1)
	copy(list[r.inline+1:], []uint64{smiOf(exitOf(r, kind)), smiOf(1), smiOf(1)})
	copy(list[r.inline+entriesBehind+3:], []uint64{smiOf(12), 0, smiOf(300)})
	if r.translations != "" {
		// An earlier translation with the frame of outer, and one that repeats it.
		tr := b.translation(0, 1, [2]int{b.or(5, 12), 2})
		at := len(tr)
		tr = append(tr, b.translation(at, 2)...)
		tr = append(tr, byte(len(r.translations)+1)) // one code of the earlier one
		tr = append(tr, b.interpreted(b.or(12, 5), 0)...)
		list[0] = b.array(tr)
		copy(list[r.inline+entriesBehind+3:], []uint64{smiOf(12), smiOf(at), smiOf(300)})
	}
	first, last := b.or(9, 20), b.or(20, 9)
	table := b.table(10, sourcePosition(first, -1), 100, sourcePosition(first, 0), 200, sourcePosition(last, -1))
	code = b.code(kind, b.words(typeList, list...), b.array(table))
	if kind == r.baseline+1 {
		b.safepoints(code)
	}
	return code
}

// exitOf is where the exits of optimized begin.
func exitOf(r *release, kind uint8) int {
	if kind == r.baseline+1 {
		return 296
	}
	return 800
}

// safepoints has the call of optimized as Maglev does: 300 is where the code goes on if it has
// become invalid, 250 where it does else.
func (b *builder) safepoints(code uint64) {
	c, _ := b.heap().readCode(code)
	words := []uint32{2, 1 | 1<<1 | 2<<4 | 1<<7, 0, 0}
	if b.l.release.slotsFirst {
		words = []uint32{9, 2, words[1], 0}
	}
	at := b.bytes[c.start+uint64(c.size)-base:]
	for i, w := range words {
		binary.LittleEndian.PutUint32(at[4*i:], w)
	}
	copy(at[safepointHeader:], []byte{
		7, 0, 0, 0, 0, 0, 0, // no deoptimization
		250, 0, 2, 301 & 255, 301 >> 8, 0, 0,
	})
}

// translation begins one with frames, of bytecode and literal.
func (b *builder) translation(back, count int, frames ...[2]int) []byte {
	t := binary.AppendUvarint([]byte{byte(strings.Index(b.l.release.translations[9:], "33") + 9)}, uint64(back))
	t = binary.AppendUvarint(binary.AppendUvarint(t, uint64(2*count)), uint64(2*count))
	for _, f := range frames {
		t = append(t, b.interpreted(f[0], f[1])...)
	}
	return t
}

// interpreted is the code of an interpreted frame that returns nothing.
func (b *builder) interpreted(bytecode, literal int) []byte {
	t := binary.AppendUvarint(binary.AppendUvarint([]byte{1}, uint64(2*bytecode)), uint64(2*literal))
	return append(t, make([]byte, b.l.release.translations[1]-'0'-2)...)
}

func TestOptimized(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		object := b.optimized(b.l.release.baseline + 2)
		c, err := b.heap().readCode(object)
		require.NoError(t, err)
		s, err := b.heap().optimized(&c)
		require.NoError(t, err)
		f, err := b.read(t, object, cookieOf(c.hash(s.hash)))
		require.NoError(t, err)
		frame := func(name string, line int) langruntime.Frame {
			return langruntime.Frame{Name: name, File: testFile, Line: line, StartLine: 2}
		}
		for position, want := range map[uint32][]langruntime.Frame{
			0:   {frame("outer", 0)},
			11:  {frame("outer", 3)},
			101: {frame("inner", 3), frame("outer", 4)},
			201: {frame("outer", 5)},
			800: {frame("outer", 5)},
			801: {frame("outer", 0)},
			803: {frame("outer", 0)},
			808: {frame("outer", 5)},
			999: {frame("outer", 5)},
		} {
			require.Equal(t, want, f.Frames(nil, position), "%d", position)
		}
		call := []langruntime.Frame{frame("outer", 5)} // by the source position table
		if b.l.release.translations != "" {
			call = []langruntime.Frame{frame("inner", 4), frame("outer", 3)}
		}
		require.Equal(t, call, f.Frames(nil, 300))
		require.Equal(t, []langruntime.Frame{frame("outer", 5)}, f.Frames(nil, 301))
		require.Equal(t, call, f.Frames(nil, 804), "it goes on at the exit")
		require.Equal(t, call, f.Frames(nil, 805), "and there it is")
		require.Positive(t, f.Bytes())
		for what, change := range map[string]func(){
			"kind":  func() { b.half(object, b.l.release.flags, uint32(b.l.release.baseline)) },
			"start": func() { b.set(object, b.l.release.start, 0x7fff00002000) },
			"size":  func() { b.half(object, b.l.release.size, 999) },
			"other": func() { b.half(object, b.l.release.flags, uint32(b.l.release.baseline)+1) },
			"deopt": func() { b.set(object, b.l.release.deopt, object) },
		} {
			before := string(b.bytes)
			change()
			_, err := b.read(t, object, cookieOf(c.hash(s.hash)))
			require.ErrorIs(t, err, langruntime.ErrGone, what)
			copy(b.bytes, before)
		}
	})
}

// Code whose functions V8 has noted no lines of says that it lacks them, so that it is read again.
func TestOptimizedWithoutLines(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		if b.l.release.translations == "" {
			return // no lines of bytecode are asked for
		}
		for _, noted := range []bool{false, true} {
			outer, _ := b.function("outer")
			inner, bytecode := b.function("inner")
			if !noted {
				b.set(bytecode, b.l.release.bytecodePositions, b.object(typeUndefined, 16))
			}
			c := &compilation{functions: []uint64{outer, inner}, callers: []int{-1}, calls: [][]int{{0, 1}}}
			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			f, err := b.readCode(t, p, b.compile(c))
			require.NoError(t, err)
			require.Equal(t, !noted, f.(langruntime.Partial).Partial())
		}
	})
}

// Maglev says otherwise where its calls go on.
func TestMaglev(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		if b.l.release.translations == "" {
			return
		}
		object := b.optimized(b.l.release.baseline + 1)
		c, err := b.heap().readCode(object)
		require.NoError(t, err)
		s, err := b.heap().optimized(&c)
		require.NoError(t, err)
		f, err := b.read(t, object, cookieOf(c.hash(s.hash)))
		require.NoError(t, err)
		names := func(position uint32) (names []string) {
			for _, frame := range f.Frames(nil, position) {
				names = append(names, frame.Name)
			}
			return names
		}
		require.Equal(t, []string{"inner", "outer"}, names(250))
		require.Equal(t, []string{"outer"}, names(251))
		require.Equal(t, []string{"inner", "outer"}, names(300))
	})
}

// Where what is said of exits makes no sense, there are none; a call that is not known has the
// function itself.
func TestExits(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		outer, _ := b.function("outer")
		first := func(position uint32, exits ...uint64) langruntime.Frame {
			c := &compilation{functions: []uint64{outer}, places: []int{90, sourcePosition(9, -1)}, exits: exits}
			if b.l.release.translations != "" {
				c.calls = [][]int{{0}, {0}}
			}
			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			f, err := b.readCode(t, p, b.compile(c))
			require.NoError(t, err)
			return f.Frames(nil, position)[0]
		}
		for what, exits := range map[string][]uint64{
			"none":                   {smiOf(100), 0, 0},
			"before the code":        {smiOf(-4), 0, smiOf(2)},
			"a number below 0":       {smiOf(100), smiOf(-1), smiOf(2)},
			"one behind the code":    {smiOf(994), 0, smiOf(2)},
			"as many as will not do": {smiOf(100), smiOf(1 << 30), smiOf(1 << 30)},
			"all behind the code":    {smiOf(1001), 0, smiOf(1)},
			"an object":              {outer, 0, smiOf(2)},
		} {
			require.Equal(t, 3, first(100, exits...).Line, what)
			require.Equal(t, 3, first(999, exits...).Line, what)
		}
		if b.l.release.translations == "" {
			require.Zero(t, first(100, smiOf(100), 0, smiOf(2)).Line)
			return
		}
		require.Equal(t, 3, first(104, smiOf(100), 0, smiOf(3)).Line, "the second call")
		require.Zero(t, first(108, smiOf(100), 0, smiOf(3)).Line, "no call")
		require.Zero(t, first(110, smiOf(100), smiOf(3), 0).Line, "a check")
		require.Equal(t, 3, first(112, smiOf(100), smiOf(3), 0).Line)
	})
}

// A compilation is what an optimizing compiler makes of functions, the first of which it compiles.
type compilation struct {
	functions []uint64
	callers   []int   // of each inlining, that of its call; -1: none
	inlined   []int   // the function of each inlining; nil: they are of the others than the first, in turn
	calls     [][]int // functions of the frames of each, outermost first
	places    []int   // of the source position table
	exits     []uint64
}

// compile returns the code.
func (b *builder) compile(c *compilation) (code uint64) {
	r := &b.l.release
	list := make([]uint64, int(r.inline)+entriesBehind, int(r.inline)+entriesBehind+entryWords*len(c.calls))
	var literals []uint64
	for _, shared := range c.functions {
		if r.wrapped {
			w := b.object(typeWrapper, 16)
			b.set(w, 8, shared)
			shared = w
		}
		literals = append(literals, shared)
	}
	list[deoptInlined] = smiOf(len(literals))
	list[r.deoptLiterals] = b.words(typeWeakArray, literals...)
	list[r.deoptShared] = literals[0]
	var inlinings, translations []byte
	for i, caller := range c.callers {
		inlinings = binary.LittleEndian.AppendUint64(inlinings, uint64(sourcePosition(16, caller)))
		function := uint64(1)
		if c.inlined != nil {
			function = uint64(uint32(c.inlined[i])) // behind it is nothing
		} else {
			function += uint64(i % (len(literals) - 1))
		}
		inlinings = binary.LittleEndian.AppendUint64(inlinings, function)
	}
	list[r.inline] = b.array(inlinings)
	copy(list[r.inline+1:], c.exits)
	for i, frames := range c.calls {
		list = append(list, smiOf(5), smiOf(len(translations)), smiOf(callOf(i)))
		translations = append(translations, b.translation(0, len(frames))...)
		for _, function := range frames {
			translations = append(translations, b.interpreted(5, function)...)
		}
	}
	list[0] = b.array(translations)
	return b.code(r.baseline+2, b.words(typeList, list...), b.array(b.table(c.places...)))
}

// callOf is the position of a call of a compilation.
func callOf(i int) int { return 10 * (i + 1) }

// roomy is a builder that has room for what is large.
func roomy(bytes int) *builder {
	b := newBuilder(version{13, 6})
	b.bytes = append(b.bytes, make([]byte, bytes)...)
	return b
}

// readCode reads code, of which p may have read before.
func (b *builder) readCode(t *testing.T, p langruntime.Process, object uint64) (langruntime.Function, error) {
	t.Helper()
	hash, err := b.heap().hashOf(object, typeCode)
	require.NoError(t, err)
	return p.Read(b.memory, object, cookieOf(hash))
}

// Scripts of their own that share a source are each gone through, until it is too much. What was
// kept is not.
func TestSourcesBounded(t *testing.T) {
	for what, tc := range map[string]struct {
		source       string
		enough, more int // functions
	}{
		"lines":      {strings.Repeat("\n", maxLines), maxReadLines / maxLines, 1 + maxReadLines/maxLines},
		"characters": {strings.Repeat(" ", maxSourceChars), maxReadSources / maxSourceChars, 1 + maxReadSources/maxSourceChars},
	} {
		t.Run(what, func(t *testing.T) {
			b := roomy(len(tc.source) + 64<<10)
			source := b.text(tc.source)
			code := func(functions int, own bool) uint64 {
				c := &compilation{}
				script := b.script(testFile, "")
				for i := range functions {
					if own {
						script = b.script(testFile, "")
					}
					b.set(script, scriptSource, source)
					c.functions = append(c.functions, b.shared(b.scope("f", "", 5, 2), script, smiOf(5), uint32(i)))
					if i > 0 {
						c.callers = append(c.callers, -1)
					}
				}
				return b.compile(c)
			}
			read := func(functions int, own bool) error {
				p, err := b.l.Open(b.memory, 0)
				require.NoError(t, err)
				_, err = b.readCode(t, p, code(functions, own))
				return err
			}
			require.NoError(t, read(tc.enough, true))
			require.ErrorIs(t, read(tc.more, true), langruntime.ErrGone)
			require.NoError(t, read(50, false), "one script of all")
		})
	}
}

// Scripts that leave no room for each other are read once for all functions of an object.
func TestScriptsAlternate(t *testing.T) {
	source := strings.Repeat("\n", maxLines*3/4)
	b := roomy(2*len(source) + 64<<10)
	scripts := []uint64{b.script("one.js", source), b.script("two.js", source)}
	c := &compilation{}
	for i := range 10 {
		c.functions = append(c.functions, b.shared(b.scope("f", "", 5, 2), scripts[i%2], smiOf(5), uint32(i)))
		c.callers = append(c.callers, -1)
	}
	p, err := b.l.Open(b.memory, 0)
	require.NoError(t, err)
	_, err = b.readCode(t, p, b.compile(c))
	require.NoError(t, err)
}

// Neither reads nor bytes of one object have no end, nor what is kept meanwhile.
func TestReadBounded(t *testing.T) {
	const calls = 4000
	table := make([]byte, maxTableBytes)
	lines := []byte{4, 20} // each entry is of another line than the one before: of offsets 4 and 9
	for len(lines) < maxTableBytes {
		lines = append(lines, 4, 20, 4, 19)
	}
	lines = lines[:maxTableBytes]
	const entries = maxTableBytes / 2
	for what, tc := range map[string]struct {
		functions int
		table     []byte
		gone      bool
	}{
		"as usual":     {functions: 2},
		"many objects": {functions: calls, gone: true},
		"large tables": {functions: 2 + maxReadBytes/maxTableBytes, table: table, gone: true},
		"some lines":   {functions: maxTableLines / entries, table: lines},
		"many lines":   {functions: maxTableLines/entries + 1, table: lines, gone: true},
	} {
		t.Run(what, func(t *testing.T) {
			b := roomy(4 << 20)
			c := &compilation{}
			script := b.script(testFile, testSource)
			bytecode := b.bytecode(20, tc.table)
			name := b.scope("f", "", 5, 2)
			for i := range tc.functions {
				c.functions = append(c.functions, b.shared(name, script, bytecode, uint32(i)))
			}
			for i := range calls {
				c.calls = append(c.calls, []int{0, i % tc.functions})
			}
			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			f, err := b.readCode(t, p, b.compile(c))
			if tc.gone {
				require.ErrorIs(t, err, langruntime.ErrGone)
				return
			}
			require.NoError(t, err)
			require.Len(t, f.Frames(nil, uint32(callOf(calls-1))), 2)
		})
	}
}

// What bounds how many numbers are taken bounds the bytes.
func TestUnsignedBounded(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, maxTableBytes)
	require.Equal(t, uint64(math.MaxUint64), unsigned(&b))
	require.Len(t, b, maxTableBytes-10)
}

// A position stands for so many functions within each other, or the code for none.
func TestFramesBounded(t *testing.T) {
	for _, depth := range []int{maxFrames, maxFrames + 1} {
		for _, calls := range []bool{false, true} {
			b := roomy(64 << 10)
			outer, _ := b.function("outer")
			inner, _ := b.function("inner")
			c := &compilation{functions: []uint64{outer, inner}}
			position := 1000
			if calls {
				frames := make([]int, depth)
				for i := range frames[1:] {
					frames[1+i] = 1
				}
				c.calls, position = [][]int{frames}, callOf(0)
			} else {
				for i := range depth - 1 {
					c.callers = append(c.callers, i-1)
				}
				c.places = []int{100, sourcePosition(9, depth-2)}
			}
			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			f, err := b.readCode(t, p, b.compile(c))
			if depth > maxFrames {
				require.ErrorIs(t, err, langruntime.ErrGone)
				continue
			}
			require.NoError(t, err)
			frames := f.Frames(nil, uint32(position))
			require.Len(t, frames, depth)
			for i, frame := range frames {
				require.Equal(t, i == depth-1, frame.Name == "outer")
			}
		}
	}
}

// Places are looked up by their order, so there is no code whose table goes back.
func TestPlacesInOrder(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		outer, _ := b.function("outer")
		for _, last := range []int{100, 1<<32 + 99} {
			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			c := &compilation{functions: []uint64{outer}, places: []int{100, sourcePosition(9, -1), last, sourcePosition(20, -1)}}
			f, err := b.readCode(t, p, b.compile(c))
			if last > 100 {
				require.ErrorIs(t, err, langruntime.ErrGone)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, 0, f.Frames(nil, 100)[0].Line)
			require.Equal(t, 5, f.Frames(nil, 101)[0].Line, "the last of one offset")
		}
	})
}

// Inlinings that call each other end.
func TestInliningsInCircles(t *testing.T) {
	c := &compiled{functions: []named{{name: "a"}}, inlinings: []inlining{{caller: 1}, {caller: 0}}, places: []place{{inlining: 0}}}
	require.Len(t, c.Frames(nil, 1), maxFrames)
}

// A translation that is not all there says nothing: a frame of which the end is missing would be another function's.
func TestTranslationCut(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		if b.l.release.translations == "" {
			return
		}
		first := b.translation(0, 1, [2]int{500, 200})
		whole := append(first, b.translation(len(first), 2)...)
		whole = append(whole, byte(len(b.l.release.translations)+1)) // one code of the earlier one
		whole = append(whole, b.interpreted(300, 400)...)
		frames := func(at, n int) []frameOf {
			left := maxTranslated
			tr := translation{counts: b.l.release.translations, b: whole[:n], at: at, left: &left}
			return tr.frames()
		}
		require.Equal(t, []frameOf{{200, 500}}, frames(0, len(first)))
		require.Equal(t, []frameOf{{200, 500}, {400, 300}}, frames(len(first), len(whole)))
		for n := range len(first) {
			require.Nil(t, frames(0, n), "%d bytes", n)
		}
		for n := range len(whole) {
			require.Nil(t, frames(len(first), n), "%d bytes", n)
		}
	})
}

func FuzzTranslation(f *testing.F) {
	f.Add([]byte{16, 0, 2, 2, 1, 10, 4, 0, 0}, 0)
	f.Add([]byte{16, 0, 4, 4, 1, 10, 4, 0, 0, 46, 1, 2, 2, 0, 0}, 0)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		left := 1 << 12
		tr := translation{counts: translations136, b: b, at: at, left: &left}
		if n := len(tr.frames()); n > 1<<12 {
			t.Fatal(n)
		}
	})
}
