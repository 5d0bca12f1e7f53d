package v8js

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	testFile   = "/srv/app.js"
	testSource = "one\r\ntwo\rthree\nfour\nfive\nsix\n" // lines begin at 0, 5, 9, 15, 20, 25
)

var versions = []version{{11, 3}, {11, 8}, {12, 4}, {12, 9}, {13, 6}, {14, 1}, {14, 6}}

func everyVersion(t *testing.T, test func(t *testing.T, b *builder)) {
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) { test(t, newBuilder(v)) })
	}
}

// function makes one that begins on line 2, with a bytecode of 20, which is on line 3 from 5
// on, and on line 4 from 12 on.
func (b *builder) function(name string) (shared, bytecode uint64) {
	first, last := b.or(5, 16), b.or(16, 5)
	bytecode = b.bytecode(20, b.table(-1, sourcePosition(first, -1), 5, sourcePosition(9, -1), 12, sourcePosition(last, -1)))
	scope := b.scope(name, "made.up", first, 2)
	return b.shared(scope, b.script(testFile, testSource), bytecode, uint32(b.or(3, 4))), bytecode
}

func (b *builder) read(t *testing.T, object uint64, cookie uint32) (langruntime.Function, error) {
	t.Helper()
	p, err := b.l.Open(b.memory, 0)
	require.NoError(t, err)
	require.Equal(t, record.RuntimeV8, p.Kind())
	return p.Read(b.memory, object, cookie)
}

func TestFunction(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		object, _ := b.function("work")
		s, err := b.heap().readShared(object)
		require.NoError(t, err)
		f, err := b.read(t, object, cookieOf(s.hash))
		require.NoError(t, err)
		want := langruntime.Frame{Name: "work", File: testFile, StartLine: 2}
		for position, line := range map[uint32]int{0: 0, 1: 2, 5: 2, 6: 3, 12: 3, 13: 4, 1 << 20: 4} {
			want.Line = line
			require.Equal(t, []langruntime.Frame{{Name: "x"}, want}, f.Frames([]langruntime.Frame{{Name: "x"}}, position))
		}
		require.Greater(t, f.Bytes(), len("work")+len(testFile))
		_, err = b.read(t, object, cookieOf(s.hash)+1)
		require.ErrorIs(t, err, langruntime.ErrGone)
	})
}

// A function of which V8 has not noted lines may have some later.
func TestFunctionWithoutLines(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		for _, noted := range []bool{false, true} {
			bytecode := b.bytecode(20, b.table(-1, sourcePosition(5, -1)))
			if !noted {
				b.set(bytecode, b.l.release.bytecodePositions, b.object(typeUndefined, 16))
			}
			object := b.shared(b.scope("work", "", 5, 2), b.script(testFile, testSource), bytecode, 3)
			s, err := b.heap().readShared(object)
			require.NoError(t, err)
			f, err := b.read(t, object, cookieOf(s.hash))
			require.NoError(t, err)
			require.Equal(t, !noted, f.(langruntime.Partial).Partial())
			require.Equal(t, noted, f.Frames(nil, 1)[0].Line != 0)
		}
	})
}

// All that a cookie is made of tells another function, and so does what cannot be read.
func TestFunctionGone(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		object, _ := b.function("work")
		s, err := b.heap().readShared(object)
		require.NoError(t, err)
		script := s.script
		source, err := b.heap().word(script, scriptSource)
		require.NoError(t, err)
		before := string(b.bytes)
		for what, change := range map[string]func(){
			"type":      func() { b.set(object, 0, b.maps[typeCode]|1) },
			"map":       func() { b.set(object, 0, 0) },
			"no code":   func() { b.object(typeFunction, 16); b.set(object, 0, b.maps[typeFunction]|1) },
			"literal":   func() { b.half(object, b.l.release.id, 4) },
			"script id": func() { b.set(script, scriptID, smiOf(78)) },
			"source":    func() { b.half(source, stringLength, 7) },
			"no script": func() { b.set(object, b.l.release.script, b.maps[typeCode]|1) },
			"name":      func() { b.set(object, b.l.release.name, object) },
			"bytecode":  func() { b.set(object, b.l.release.data, 0x13) },
		} {
			change()
			_, err := b.read(t, object, cookieOf(s.hash))
			require.ErrorIs(t, err, langruntime.ErrGone, what)
			copy(b.bytes, before)
		}
		_, err = b.read(t, 0x11, cookieOf(s.hash))
		require.ErrorIs(t, err, langruntime.ErrGone)
		_, err = b.read(t, object, cookieOf(s.hash))
		require.NoError(t, err)
	})
}

// changing is memory in which a word changes when another address is read.
type changing struct {
	*builder
	when, what uint64
}

func (c *changing) ReadAt(p []byte, addr uint64) error {
	if addr == c.when {
		c.put(c.what, 0x4_0000_0000)
	}
	return c.memory.ReadAt(p, addr)
}

// One that is replaced while it is read has gone.
func TestFunctionReplaced(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		object, _ := b.function("work")
		s, err := b.heap().readShared(object)
		require.NoError(t, err)
		source, err := b.heap().word(s.script, scriptSource)
		require.NoError(t, err)
		p, err := b.l.Open(b.memory, 0)
		require.NoError(t, err)
		_, err = p.Read(&changing{b, source - 1 + stringData, s.script - 1 + scriptID}, object, cookieOf(s.hash))
		require.ErrorIs(t, err, langruntime.ErrGone)
	})
}

// collected is memory in which an object moves before one of the reads, and another of its kind and size takes its
// place.
type collected struct {
	*memory
	of, other    placed
	to           uint64
	reads, moves int
}

func (c *collected) ReadAt(p []byte, addr uint64) error {
	if c.reads++; c.reads == c.moves {
		c.move()
	}
	return c.memory.ReadAt(p, addr)
}

func (c *collected) move() {
	at := func(pointer uint64) []byte { return c.bytes[pointer&^7-base:][:c.of.bytes] }
	copy(at(c.to), at(c.of.pointer))
	copy(at(c.of.pointer), at(c.other.pointer))
	for i := 0; i < len(c.bytes); i += 8 {
		if w := binary.LittleEndian.Uint64(c.bytes[i:]); w&^2 == c.of.pointer {
			c.put(base+uint64(i), c.to|w&7)
		}
	}
}

// Whatever moves while a function is read, there is nothing of what came into its place: neither at once, nor in what is
// kept of scripts.
func TestMovedWhileRead(t *testing.T) {
	for what, make := range map[string]func(b *builder) uint64{
		"function": func(b *builder) uint64 {
			object, _ := b.function("work")
			return object
		},
		"baseline": func(b *builder) uint64 {
			object, bytecode := b.function("work")
			table := []byte{byte(b.or(50, 10))}
			b.set(object, b.l.release.data, b.code(b.l.release.baseline, bytecode, b.array(append(table, make([]byte, 20)...))))
			return object
		},
		"strings": func(b *builder) uint64 {
			thin, sliced := b.indirect(stringThin, 4, b.text("work")), b.indirect(stringSliced, 4, b.text("homework"), smiOf(4))
			return b.shared(b.indirect(stringCons, 8, thin, sliced), b.script(testFile, testSource), smiOf(5), uint32(b.or(3, 4)))
		},
		"optimized": func(b *builder) uint64 { return b.optimized(b.l.release.baseline + 1 + uint8(b.l.version.major)%2) },
	} {
		t.Run(what, func(t *testing.T) {
			everyVersion(t, func(t *testing.T, b *builder) { movedWhileRead(t, b, make) })
		})
	}
}

func movedWhileRead(t *testing.T, b *builder, make func(b *builder) uint64) {
	object := make(b)
	n := len(b.objects)
	b.other = true
	make(b)
	objects, others := b.objects[:n], b.objects[n:]
	require.Len(t, others, n)
	to := b.alloc(2048) | 1
	b.bytes = b.bytes[:b.next-base]
	hash := func(m *memory) uint64 {
		h := &heap{mem: m, Layout: b.l}
		_, kind, err := h.typeOf(object)
		require.NoError(t, err)
		hash, err := h.hashOf(object, kind)
		if err != nil {
			return 0
		}
		return hash
	}
	before := hash(b.memory)
	still := &collected{memory: b.memory}
	whole, err := (&process{layout: b.l}).Read(still, object, cookieOf(before))
	require.NoError(t, err)
	step := 1 + still.reads/50 // not each of those of code, for it takes seconds
	for i, of := range objects {
		require.Equal(t, of.bytes, others[i].bytes)
		for moves := 1 + i%step; moves <= still.reads; moves += step {
			p := &process{layout: b.l}
			m := &collected{memory: &memory{slices.Clone(b.bytes)}, of: of, other: others[i], to: to, moves: moves}
			f, err := p.Read(m, object, cookieOf(before))
			if err != nil {
				require.ErrorIs(t, err, langruntime.ErrGone)
			} else {
				require.Equal(t, whole, f, "object %d moves before read %d", i, moves)
			}
			if len(p.scripts.known) == 0 || hash(m.memory) != before {
				continue // nothing is kept, or it has moved itself, or what it is of
			}
			f, err = p.Read(m.memory, object, cookieOf(before))
			require.NoError(t, err, "object %d has moved before read %d", i, moves)
			require.Equal(t, whole, f, "object %d has moved before read %d", i, moves)
		}
	}
}

// The collector leaves the new address in place of the map.
func TestFunctionMoved(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		object, _ := b.function("work")
		s, err := b.heap().readShared(object)
		require.NoError(t, err)
		old := b.alloc(128) | 1
		b.set(old, 0, object-1)
		f, err := b.read(t, old, cookieOf(s.hash))
		require.NoError(t, err)
		require.Equal(t, "work", f.Frames(nil, 0)[0].Name)
	})
}

func TestNames(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		undefined := b.object(typeUndefined, 16)
		for want, name := range map[string]uint64{
			"largest":   b.scope("largest", "", 5, 200),
			"none.less": b.scope("", "none.less", 5, 3),
			anonymous:   b.scope("", "", 5, 0),
			"text":      b.text("text"),
			"größe 🐍":   b.wide("größe 🐍"),
		} {
			object := b.shared(name, undefined, smiOf(5), 0)
			s, err := b.heap().readShared(object)
			require.NoError(t, err)
			f, err := b.read(t, object, cookieOf(s.hash))
			require.NoError(t, err)
			require.Equal(t, []langruntime.Frame{{Name: want}}, f.Frames(nil, 7), "a builtin has no file")
		}
		object := b.shared(0, undefined, smiOf(5), 0)
		s, err := b.heap().readShared(object)
		require.NoError(t, err)
		f, err := b.read(t, object, cookieOf(s.hash))
		require.NoError(t, err)
		require.Equal(t, anonymous, f.Frames(nil, 0)[0].Name)
	})
}

func TestText(t *testing.T) {
	b := newBuilder(version{13, 6})
	h := b.heap()
	abc, long := b.text("abc"), b.text(strings.Repeat("x", 5000))
	outside := b.alloc(16)
	copy(b.bytes[outside-base:], "native")
	cons := b.indirect(stringCons, 6, abc, b.text("def"))
	deep := abc
	for range maxPieces {
		deep = b.indirect(stringCons, 3, deep, b.text(""))
	}
	circle := b.indirect(stringThin, 3, 0)
	b.set(circle, stringData, circle)
	for want, s := range map[string]uint64{
		"abc":                             abc,
		"bc":                              b.indirect(stringSliced, 2, abc, smiOf(1)),
		"abcdef":                          cons,
		"native":                          b.indirect(stringExternal, 6, 0, outside),
		"a\ufffdb":                        b.text("a\nb"),
		"\ufffd":                          b.wide("\x00"),
		strings.Repeat("x", maxNameChars): b.indirect(stringThin, 5000, long),
	} {
		got, err := h.text(s, maxNameChars)
		require.NoError(t, err, want)
		require.Equal(t, want, got)
	}
	for what, s := range map[string]uint64{
		"too deep":          deep,
		"circle":            circle,
		"no string":         b.object(typeShared, 32),
		"beyond its parent": b.indirect(stringSliced, 3, abc, smiOf(1)),
		"before its parent": b.indirect(stringSliced, 1, abc, smiOf(-1)),
		"no address":        b.indirect(stringExternal, 6, 0, 16),
		"not cached":        b.indirect(stringExternal|stringUncached, 6, 0, outside),
		"no kind":           b.indirect(4, 3, abc),
		"small integer":     smiOf(4),
	} {
		_, err := h.text(s, maxNameChars)
		require.ErrorIs(t, err, langruntime.ErrGone, what)
	}
}

func TestScriptLines(t *testing.T) {
	b := newBuilder(version{13, 6})
	text := strings.Repeat("a\n", sourceAtOnce) + "\r\nb\rc\u2028d"
	b.bytes = append(b.bytes, make([]byte, 1<<20)...)
	b.next = base + 64<<10
	at := b.wide(text)
	p, err := b.heap().resolve(at)
	require.NoError(t, err)
	s := &script{first: 10}
	require.NoError(t, b.heap().readLines(s, p.characters))
	n := int32(2 * sourceAtOnce)
	for position, line := range map[int32]int{
		0: 11, 1: 11, 2: 12, n - 1: 10 + sourceAtOnce, n: 11 + sourceAtOnce, n + 1: 11 + sourceAtOnce,
		n + 2: 12 + sourceAtOnce, n + 4: 13 + sourceAtOnce, n + 6: 14 + sourceAtOnce, -1: 0,
	} {
		require.Equal(t, line, s.line(position), "%d", position)
	}
	s.cut = true
	require.Zero(t, s.line(n+6), "behind what was read")
	require.Zero(t, (&script{}).line(0))

	// There are more lines than are kept, and the last character that was read may have ended one.
	n = maxLines + 3*sourceAtOnce
	b = roomy(int(n) + 64<<10)
	p, err = b.heap().resolve(b.text(strings.Repeat("\r", int(n))))
	require.NoError(t, err)
	s = &script{}
	require.NoError(t, b.heap().readLines(s, p.characters))
	require.Equal(t, maxLines, s.line(maxLines-1))
	require.Zero(t, s.line(n-1), "behind what was read")
}

// What is kept of scripts is bounded, and the one that was used last stays.
func TestScriptsBounded(t *testing.T) {
	var s scripts
	for i := range uint64(10) {
		s.put(scriptKey{at: i}, &script{ends: make([]uint32, maxScriptBytes/4/5)})
		require.LessOrEqual(t, s.held, maxScriptBytes)
		require.NotNil(t, s.get(scriptKey{at: i}))
		if i > 0 {
			require.NotNil(t, s.get(scriptKey{at: 0}), "in use")
		}
	}
	require.Nil(t, s.get(scriptKey{at: 2}))
	require.Greater(t, s.bytes(), maxScriptBytes/2)
	require.Less(t, s.bytes(), maxScriptBytes+4096)
	s.put(scriptKey{at: 20}, &script{ends: make([]uint32, maxScriptBytes/2)})
	require.Len(t, s.known, 1)
	for i := range uint64(4 * maxScriptBytes / maxNameChars) {
		s.put(scriptKey{at: i}, &script{file: strings.Repeat("x", maxNameChars)})
	}
	require.Less(t, len(s.known), maxScriptBytes/maxNameChars, "without lines")
	require.Less(t, s.bytes(), maxScriptBytes+maxScriptBytes/4)
}

// The source of a script that is kept is not read again.
func TestScriptKept(t *testing.T) {
	b := newBuilder(version{13, 6})
	object, _ := b.function("work")
	s, err := b.heap().readShared(object)
	require.NoError(t, err)
	source, err := b.heap().word(s.script, scriptSource)
	require.NoError(t, err)
	p, err := b.l.Open(b.memory, 0)
	require.NoError(t, err)
	for range 2 {
		f, err := p.Read(b.memory, object, cookieOf(s.hash))
		require.NoError(t, err)
		require.Equal(t, 2, f.Frames(nil, 0)[0].StartLine)
		b.set(source, stringData, 0) // its first line has no end any more
	}
}

func TestBaseline(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		object, bytecode := b.function("work")
		table := []byte{50} // then 10 bytes for each bytecode, but 200 for that at 5
		for i := range 20 {
			if i == 5 {
				table = binary.AppendUvarint(table, 200)
			} else {
				table = append(table, 10)
			}
		}
		code := b.code(b.l.release.baseline, bytecode, b.array(table))
		b.set(object, b.l.release.data, code)
		s, err := b.heap().readShared(object)
		require.NoError(t, err)
		c, err := b.heap().readCode(code)
		require.NoError(t, err)
		f, err := b.read(t, object, cookieOf(c.hash(s.hash)))
		require.NoError(t, err)
		for offset, line := range map[uint32]int{0: 0, 49: 0, 50: 2, 99: 2, 100: 3, 299: 3, 359: 3, 360: 4, 999: 4} {
			require.Equal(t, line, f.Frames(nil, offset+1)[0].Line, "%d", offset)
		}
		// The interpreter may run the same function.
		f, err = b.read(t, object, cookieOf(s.hash))
		require.NoError(t, err)
		require.Equal(t, 3, f.Frames(nil, 6)[0].Line)
	})
}

func TestBytecodeLength(t *testing.T) {
	r, _ := releaseOf(version{13, 6})
	for _, tc := range []struct {
		code []byte
		want int
	}{
		{nil, 0}, {[]byte{0}, 0}, {[]byte{4}, 1}, {[]byte{13}, 2}, {[]byte{0, 13}, 4}, {[]byte{1, 13}, 6}, {[]byte{255}, 1},
	} {
		require.Equal(t, tc.want, r.bytecodeLength(tc.code), "% x", tc.code)
	}
}

// FuzzRead changes words of a sound heap:
//
//	[0:2] where, in words  [2:10] to what  and so on
func FuzzRead(f *testing.F) {
	var heaps []*builder
	var objects []uint64
	for i, v := range versions {
		b := newBuilder(v)
		objects = append(objects, b.optimized(b.l.release.baseline+1+uint8(i%2)))
		b.bytes = b.bytes[:b.next-base]
		heaps = append(heaps, b)
		b = newBuilder(v)
		object, bytecode := b.function("work")
		code := b.code(b.l.release.baseline, bytecode, b.array([]byte{50, 10, 10, 10}))
		b.set(object, b.l.release.data, code)
		b.bytes = b.bytes[:b.next-base]
		heaps, objects = append(heaps, b), append(objects, object)
	}
	for i := range heaps {
		f.Add(uint8(i), []byte{0, 1, 5, 0, 0, 0, 1, 0, 0, 0})
		f.Add(uint8(i), []byte(nil))
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		i := int(which) % len(heaps)
		m := &memory{slices.Clone(heaps[i].bytes)}
		for ; len(edits) >= 10; edits = edits[10:] {
			at := 8 * (int(binary.LittleEndian.Uint16(edits)) % (len(m.bytes) / 8))
			copy(m.bytes[at:], edits[2:10])
		}
		h := &heap{mem: m, Layout: heaps[i].l}
		at, kind, err := h.typeOf(objects[i])
		if err != nil {
			return
		}
		hash, err := h.hashOf(at, kind)
		if err != nil {
			return
		}
		fn, err := (&process{layout: h.Layout}).Read(m, at, cookieOf(hash))
		if err != nil {
			return
		}
		for position := range uint32(400) {
			frames := fn.Frames(nil, position)
			if len(frames) == 0 || len(frames) > maxFrames {
				t.Fatalf("%d frames", len(frames))
			}
			for _, frame := range frames {
				if !utf8.ValidString(frame.Name) || !utf8.ValidString(frame.File) || frame.Name == "" || frame.Line < 0 {
					t.Fatalf("%+v", frame)
				}
			}
		}
		if fn.Bytes() > 16<<20 {
			t.Fatalf("%d bytes", fn.Bytes())
		}
	})
}

func FuzzPositions(f *testing.F) {
	f.Add([]byte{1, 4, 3, 0, 0x52, 0x68}, true)
	f.Fuzz(func(t *testing.T, b []byte, flagged bool) {
		n := 0
		for p := (positionTable{b: b, flagged: flagged}); p.next(); n++ {
			_ = fmt.Sprint(p.offset(), position(p.position).offset(), position(p.position).in())
		}
		if n > len(b)/2 {
			t.Fatal(n)
		}
	})
}
