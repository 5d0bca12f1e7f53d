package hotspot

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

var versions = []uint64{version17, version25}

// On aarch64 interpreted frames have another layout, and newer versions another register for the
// caller's stack pointer.
func TestOpenAArch64(t *testing.T) {
	for _, version := range versions {
		j := newJVM(t, version, "")
		require.EqualValues(t, 64, j.open(t).Record().HotSpot.BytecodeSlot)
		j.library.machine = elf.EM_AARCH64
		r := j.open(t).Record().HotSpot
		require.EqualValues(t, 72, r.BytecodeSlot)
		require.Equal(t, version != version17, r.SenderX19 == 1)
	}
}

func TestOpen(t *testing.T) {
	for _, version := range versions {
		p := newJVM(t, version, "").open(t)
		require.Equal(t, record.RuntimeHotSpot, p.Record().Kind)
		r := p.Record().HotSpot
		require.EqualValues(t, heapStart, r.Low)
		require.EqualValues(t, heapLimit, r.High)
		require.Equal(t, record.HotSpotHeap{Start: heapStart, Limit: heapLimit, Segments: 0x7e1000000000}, r.Heaps[0])
		require.EqualValues(t, heapStart+0x1000, r.Interpreter)
		require.EqualValues(t, heapStart+0x3000, r.InterpreterLimit)
		require.EqualValues(t, heapStart+0x800, r.CallStubReturn)
		require.EqualValues(t, 7, r.SegmentShift)
		require.Equal(t, version == version25, r.Relative == 1)
		require.Equal(t, version == version25, r.ContinuationReturn != 0)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, version := range []uint64{8, 11, 19, 26} {
		j := newJVM(t, version, "")
		_, err := j.library.Open(j, 0)
		require.ErrorIs(t, err, langruntime.ErrUnsupported, version)
	}
	for _, version := range versions {
		for _, name := range []string{"CodeBlob._frame_size", "Symbol._length", "CodeCache._heaps", "CodeHeap._segmap"} {
			j := newJVM(t, version, name)
			_, err := j.library.Open(j, 0)
			require.ErrorIs(t, err, langruntime.ErrStarting, "%s may be there later", name)
			require.ErrorContains(t, err, name)
		}
	}
}

// A process that has no code heaps yet is looked at again.
func TestOpenStarting(t *testing.T) {
	for _, name := range []string{"CodeCache._heaps", "AbstractInterpreter._code", "StubRoutines._call_stub_return_address"} {
		j := newJVM(t, version17, "")
		j.put(j.statics[name], 0, 8)
		_, err := j.library.Open(j, 0)
		require.ErrorIs(t, err, langruntime.ErrStarting, name)
	}
}

// The interpreter's limit is not taken before it has been made, and has given back what it has not used.
func TestOpenBeforeTheInterpreter(t *testing.T) {
	for _, version := range versions {
		j := newJVM(t, version, "")
		stubs, err := readUint(j, j.statics["AbstractInterpreter._code"], 8)
		require.NoError(t, err)
		for _, room := range []struct{ limit, end uint64 }{{0, 0}, {0x4000, 0}, {0x4000, 0x1800}} {
			j.put(stubs+20, room.limit, 4)
			j.put(stubs+28, room.end, 4)
			_, err := j.library.Open(j, 0)
			require.ErrorIs(t, err, langruntime.ErrStarting, "%+v", room)
		}
		j.put(stubs+20, 0x1800, 4)
		require.EqualValues(t, heapStart+0x1000+0x1800, j.open(t).Record().HotSpot.InterpreterLimit)
	}
}

// Tables of a hostile process have an end.
func TestTablesWithoutEnd(t *testing.T) {
	j := newJVM(t, version17, "")
	j.put(j.library.symbols[1], 0, 8) // the stride: the same entry again and again
	_, err := j.library.Open(j, 0)
	require.ErrorIs(t, err, langruntime.ErrStarting)
	j = newJVM(t, version17, "")
	j.put(j.library.symbols[1], 1<<40, 8)
	_, err = j.library.Open(j, 0)
	require.ErrorIs(t, err, langruntime.ErrStarting)
}

// lines has line 10 from bytecode 0 on, 12 from 5 on, 112 from 105 on.
func lines(p *process) []byte {
	if p.version == version17 {
		return []byte{escape, 0, 20, 5<<3 | 2, escape, 200, 0, 200, 0, 0} // twice the number
	}
	return []byte{escape, 1, 21, 5<<3 | 2, escape, 201, 1, 201, 1, 0}
}

func TestInterpretedMethod(t *testing.T) {
	for _, version := range versions {
		j := newJVM(t, version, "")
		p := j.open(t)
		method := j.method(p, "shop/Cart", "add", "Cart.java", 200, lines(p))
		object, cookie := p.frameOfMethod(j.image, method)
		f, err := p.Read(j, object, cookie)
		require.NoError(t, err)
		for position, line := range map[uint32]int{0: 0, 1: 10, 5: 10, 6: 12, 105: 12, 106: 112, 200: 112} {
			require.Equal(t, []langruntime.Frame{{Name: "shop.Cart.add", File: "Cart.java", Line: line}},
				f.Frames(nil, position), "%d: position %d", version, position)
		}
		require.Positive(t, f.Bytes())
	}
}

// Another method in the place of one has never its name.
func TestMethodGone(t *testing.T) {
	j := newJVM(t, version17, "")
	p := j.open(t)
	method := j.method(p, "shop/Cart", "add", "Cart.java", 200, lines(p))
	object, cookie := p.frameOfMethod(j.image, method)
	other := j.method(p, "shop/Desk", "pay", "Desk.java", 200, lines(p))
	copy(j.bytes[method-imageBase:][:88], j.bytes[other-imageBase:])
	_, err := p.Read(j, object, cookie)
	require.ErrorIs(t, err, langruntime.ErrGone)
	_, err = p.Read(j, 0x1001, cookie)
	require.ErrorIs(t, err, langruntime.ErrGone)
	_, err = p.Read(j, method|2, cookie)
	require.ErrorIs(t, err, langruntime.ErrGone)
}

// A class that was unloaded has given up its symbols, some of which others may still have.
func TestSymbolsOfUnloadedClass(t *testing.T) {
	for _, version := range versions {
		for _, symbol := range []string{"shop/Cart", "buy", "Cart.java"} {
			j := newJVM(t, version, "")
			p := j.open(t)
			object, cookie := p.frameOfMethod(j.image, j.method(p, "shop/Cart", "buy", "Cart.java", 200, lines(p)))
			references := imageBase + uint64(bytes.Index(j.bytes, []byte(symbol))-p.symbolBody)
			for n, gone := range map[uint64]bool{0: true, 2: false, 0xffff: false} { // the last one stays for ever
				j.put(references, n, 2)
				_, err := p.Read(j, object, cookie)
				require.Equal(t, gone, err != nil, "%d: %s with %d", version, symbol, n)
				if gone {
					require.ErrorIs(t, err, langruntime.ErrGone)
				}
			}
		}
	}
}

// What is replaced while it is read is the first one as a whole, or has gone.
func TestMethodReplacedWhileRead(t *testing.T) {
	for _, version := range versions {
		// read has another method, and its strings, come into the place of one before a read; 0: before none.
		read := func(replaced int) (f langruntime.Function, reads int, err error) {
			j := newJVM(t, version, "")
			p := j.open(t)
			method := j.method(p, "shop/Cart", "buy", "Cart.java", 200, lines(p))
			other := j.method(p, "shop/Cart", "pay", "Desk.java", 200, nil)
			object, cookie := p.frameOfMethod(j.image, method)
			f, err = p.Read(during{j, func() {
				if reads++; reads == replaced {
					copy(j.bytes[method-imageBase:][:88], j.bytes[other-imageBase:])
					for from, to := range map[string]string{"buy": "pay", "Cart.java": "Desk.java"} {
						copy(j.bytes[bytes.Index(j.bytes, []byte(from)):], to)
					}
				}
			}}, object, cookie)
			return f, reads, err
		}
		whole, reads, err := read(0)
		require.NoError(t, err)
		for n := 1; n <= reads+1; n++ {
			f, _, err := read(n)
			if err != nil {
				require.ErrorIs(t, err, langruntime.ErrGone)
				require.LessOrEqual(t, n, reads)
			} else {
				require.Equal(t, whole, f, "%d: replaced before read %d", version, n)
			}
		}
	}
}

// Behind the last place, what was inlined there has ended. Without any, the method's first line counts.
func TestCompiledMethodBehindPlaces(t *testing.T) {
	for _, version := range versions {
		j := newJVM(t, version, "")
		p := j.open(t)
		outer := j.method(p, "shop/Cart", "add", "Cart.java", 200, lines(p))
		inner := j.method(p, "shop/Price$Tax", "of", "Price.java", 200, lines(p))
		scopes := append([]byte{0}, numbers(p, 0, 1, 6)...) // at 1: outer, bytecode 5
		scopes = append(scopes, numbers(p, 1, 2, 1)...)     // at 4: inner at bytecode 0, in outer
		frames := func(places []part, position uint32) []langruntime.Frame {
			object, cookie := p.frameOf(j.image, j.nmethod(p, nameCompiled, outer, []uint64{outer, inner}, scopes, places))
			f, err := p.Read(j, object, cookie)
			require.NoError(t, err)
			return f.Frames(nil, position)
		}
		cart := langruntime.Frame{Name: "shop.Cart.add", File: "Cart.java", Line: 12}
		tax := langruntime.Frame{Name: "shop.Price$Tax.of", File: "Price.java", Line: 10}
		require.Equal(t, []langruntime.Frame{tax, cart}, frames([]part{{16, 4}}, 16), version)
		require.Equal(t, []langruntime.Frame{cart}, frames([]part{{16, 4}}, 17), version)
		cart.Line = 10
		require.Equal(t, []langruntime.Frame{cart}, frames(nil, 16), version)
		cart.Line = 0
		require.Equal(t, []langruntime.Frame{cart}, frames(nil, 0), version)
	}
}

func TestCompiledMethod(t *testing.T) {
	for _, version := range versions {
		j := newJVM(t, version, "")
		p := j.open(t)
		outer := j.method(p, "shop/Cart", "add", "Cart.java", 200, lines(p))
		inner := j.method(p, "shop/Price$Tax", "of", "Price.java", 200, lines(p))
		// A scope is the offset of the one around it, the number of the method, the bytecode plus 1.
		scopes := append([]byte{0}, numbers(p, 0, 1, 1)...)  // at 1: outer, bytecode 0
		scopes = append(scopes, numbers(p, 1, 2, 6)...)      // at 4: inner at bytecode 5, in outer
		scopes = append(scopes, numbers(p, 0, 1, 150, 0)...) // at 7: outer at bytecode 149
		code := j.nmethod(p, nameCompiled, outer, []uint64{outer, inner}, scopes, []part{{16, 1}, {32, 4}, {48, 7}})
		object, cookie := p.frameOf(j.image, code)
		f, err := p.Read(j, object, cookie)
		require.NoError(t, err)
		cart := func(line int) langruntime.Frame {
			return langruntime.Frame{Name: "shop.Cart.add", File: "Cart.java", Line: line}
		}
		tax := langruntime.Frame{Name: "shop.Price$Tax.of", File: "Price.java", Line: 12}
		for position, want := range map[uint32][]langruntime.Frame{
			0: {cart(0)}, 1: {cart(10)}, 16: {cart(10)}, 17: {tax, cart(10)}, 32: {tax, cart(10)}, 48: {cart(112)}, 49: {cart(112)},
		} {
			require.Equal(t, want, f.Frames(nil, position), "%d: position %d", version, position)
		}
		require.Positive(t, f.Bytes())

		_, err = p.Read(j, object, cookie+1)
		require.ErrorIs(t, err, langruntime.ErrGone, "another cookie")
		j.put(code+uint64(p.compileID), 78, 4)
		_, err = p.Read(j, object, cookie)
		require.ErrorIs(t, err, langruntime.ErrGone, "compiled again in the same place")
	}
}

// Freed code has no name, be it freed before it is read or meanwhile: its methods may be
// others by now.
func TestFreedCode(t *testing.T) {
	for _, version := range versions {
		fields := map[string]func(j *jvm, p *process, code uint64){
			"its block": func(j *jvm, p *process, code uint64) {
				j.put(code-uint64(p.record.BlockBytes)+uint64(p.blockUsed), 0, 1)
			},
		}
		if version == version25 {
			fields["its immutable data"] = func(j *jvm, p *process, code uint64) { j.put(code+uint64(p.immutable), code, 8) }
			fields["its mutable data"] = func(j *jvm, p *process, code uint64) { j.put(code+uint64(p.mutable), code, 8) }
		}
		for what, free := range fields {
			read := func(freed int) error {
				j := newJVM(t, version, "")
				p := j.open(t)
				method := j.method(p, "shop/Cart", "add", "Cart.java", 20, lines(p))
				code := j.nmethod(p, nameCompiled, method, []uint64{method}, append([]byte{0}, numbers(p, 0, 1, 1)...), []part{{16, 1}})
				object, cookie := p.frameOf(j.image, code)
				reads := 0
				_, err := p.Read(during{j, func() {
					if reads++; reads == freed {
						free(j, p, code)
					}
				}}, object, cookie)
				return err
			}
			require.NoError(t, read(0), what)
			require.ErrorIs(t, read(5), langruntime.ErrGone, "%d: %s", version, what)
		}
	}
}

// during does something before each read.
type during struct {
	langruntime.Memory
	do func()
}

func (d during) ReadAt(p []byte, addr uint64) error {
	d.do()
	return d.Memory.ReadAt(p, addr)
}

// A small CodeBlob may be the last before what cannot be read. Of a larger one a part would be missing.
func TestBlobAtEnd(t *testing.T) {
	for _, version := range versions {
		for size, ok := range map[uint64]bool{112: true, 113: false} {
			j := newJVM(t, version, "")
			p := j.open(t)
			name := j.text("StubRoutines (1)")
			for j.alloc(16)%minPageBytes != minPageBytes-16-112 {
				continue
			}
			code := j.alloc(112)
			j.put(code+uint64(p.blobName), name, 8)
			j.put(code+uint64(p.blobSize), size, 4)
			object, cookie := p.frameOf(j.image, code)
			f, err := p.Read(j, object, cookie)
			if !ok {
				require.ErrorIs(t, err, langruntime.ErrGone)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []langruntime.Frame{{Name: "StubRoutines (1)"}}, f.Frames(nil, 0))
		}
	}
}

// Scopes in circles, methods and tables that are not there: no name, and no end without one.
func TestHostileScopes(t *testing.T) {
	for _, version := range versions {
		for name, scope := range map[string][]byte{
			"itself": {1, 1, 1}, "no method": {0, 0, 1}, "a method beyond": {0, 9, 1}, "an end": {0},
		} {
			j := newJVM(t, version, "")
			p := j.open(t)
			method := j.method(p, "A", "b", "A.java", 20, nil)
			code := j.nmethod(p, nameCompiled, method, []uint64{method}, append([]byte{0}, numbers(p, scope...)...), []part{{16, 1}})
			object, cookie := p.frameOf(j.image, code)
			if name == "an end" {
				j.bytes = j.bytes[:len(j.bytes)-8]
			}
			_, err := p.Read(j, object, cookie)
			require.ErrorIs(t, err, langruntime.ErrGone, name)
		}
		j := newJVM(t, version, "")
		p := j.open(t)
		method := j.method(p, "A", "b", "A.java", 20, nil)
		code := j.nmethod(p, nameCompiled, method, []uint64{method}, append([]byte{0}, numbers(p, 0, 1, 1)...), []part{{32, 1}, {16, 1}})
		object, cookie := p.frameOf(j.image, code)
		_, err := p.Read(j, object, cookie)
		require.ErrorIs(t, err, langruntime.ErrGone, "code in no order")
	}
}

// However scopes lead to each other, a place is within so many methods and no more.
func TestInlinedTooDeep(t *testing.T) {
	for _, version := range versions {
		for n, ok := range map[int]bool{maxInlined: true, maxInlined + 1: false, 1000: false} {
			j := newJVM(t, version, "")
			p := j.open(t)
			method := j.method(p, "A", "b", "A.java", 20, nil)
			scopes, sender := []byte{0}, 0
			var parts []part // one for each, so that the sender of each is known already
			for i := range n {
				at := len(scopes)
				scopes = append(scopes, codeOf(p, sender)...)
				scopes = append(scopes, numbers(p, 1, 1)...)
				parts = append(parts, part{16 * (i + 1), at})
				sender = at
			}
			code := j.nmethod(p, nameCompiled, method, []uint64{method}, scopes, parts)
			object, cookie := p.frameOf(j.image, code)
			f, err := p.Read(j, object, cookie)
			if !ok {
				require.ErrorIs(t, err, langruntime.ErrGone)
				continue
			}
			require.NoError(t, err)
			require.Len(t, f.Frames(nil, uint32(16*n)), n)
		}
	}
}

// What cannot be read has no name, be it unmapped before or while it is read.
func TestUnmapped(t *testing.T) {
	for _, version := range versions {
		j := newJVM(t, version, "")
		p := j.open(t)
		method := j.method(p, "shop/Cart", "add", "Cart.java", 20, lines(p))
		compiled := j.nmethod(p, nameCompiled, method, []uint64{method}, append([]byte{0}, numbers(p, 0, 1, 1)...), []part{{16, 1}})
		stub := j.nmethod(p, "StubRoutines (1)", 0, nil, nil, nil)
		for _, object := range []uint64{method | record.HotSpotMethod, compiled, stub} {
			reads := 0
			count := counted{j, &reads, -1}
			_, cookie := p.frameOf(j.image, object)
			if object&objectMask == record.HotSpotMethod {
				_, cookie = p.frameOfMethod(j.image, method)
			}
			f, err := p.Read(count, object, cookie)
			require.NoError(t, err)
			require.NotNil(t, f)
			all := reads
			for unmapped := range all {
				reads = 0
				f, err = p.Read(counted{j, &reads, unmapped}, object, cookie)
				require.ErrorIs(t, err, langruntime.ErrGone, "%d: read %d of %d", version, unmapped, all)
				require.Nil(t, f)
			}
		}
	}
}

// counted counts reads, and has one and those behind it fail.
type counted struct {
	langruntime.Memory
	reads    *int
	unmapped int
}

func (c counted) ReadAt(p []byte, addr uint64) error {
	*c.reads++
	if c.unmapped >= 0 && *c.reads > c.unmapped {
		return fakemem.ErrUnmapped
	}
	return c.Memory.ReadAt(p, addr)
}

func TestStub(t *testing.T) {
	j := newJVM(t, version17, "")
	p := j.open(t)
	code := j.nmethod(p, "StubRoutines (1)", 0, nil, nil, nil)
	object, cookie := p.frameOf(j.image, code)
	f, err := p.Read(j, object, cookie)
	require.NoError(t, err)
	require.Equal(t, []langruntime.Frame{{Name: "StubRoutines (1)"}}, f.Frames(nil, 0))
	require.Equal(t, []langruntime.Frame{{Name: inHeap}}, f.Frames(nil, record.HotSpotInHeap))
	_, err = p.Read(j, object, cookie+1)
	require.ErrorIs(t, err, langruntime.ErrGone)
}

func TestClassName(t *testing.T) {
	for internal, want := range map[string]string{
		"java/lang/String": "java.lang.String", "Main": "Main", "a/B$C": "a.B$C",
		"a/B$$Lambda$14/0x0000000800c03000": "a.B$$Lambda$14", "a/B$$Lambda+0x00007f": "a.B$$Lambda", "a/0xyz": "a",
	} {
		require.Equal(t, want, className(internal))
	}
}

func TestNumbers(t *testing.T) {
	s := stream{b: []byte{0, 191, 192, 0, 192, 1, 255, 255, 255, 255, 255}}
	for _, want := range []uint32{0, 191, 192, 192 + 64, 4346097855 - 1<<32} {
		require.Equal(t, want, s.uint())
	}
	require.False(t, s.bad)
	s.uint()
	require.True(t, s.bad, "behind the end")
	s = stream{b: []byte{1, 191, 192, 1, 0}, excess: 1}
	require.EqualValues(t, 0, s.uint())
	require.EqualValues(t, 190, s.uint())
	require.EqualValues(t, 191, s.uint())
	s.uint()
	require.True(t, s.bad, "a zero")
	s = stream{b: []byte{0, 1, 2, 3}}
	for _, want := range []int{0, -1, 1, -2} {
		require.Equal(t, want, s.int())
	}
}
