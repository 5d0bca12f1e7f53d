package v8js

import "sort"

// Operands of the codes of a frame translation by version, one digit each, as
// src/deoptimizer/translation-opcode.h of V8 declares them. The first two are interpreted frames,
// the first four those of JavaScript. The last one repeats what an earlier translation has; so
// does, without an operand, any number from the number of codes on.
const (
	translations118 = "5333213432103311111111111111111101111121"
	translations129 = "53332134332100331111111111111111111101111121"
	translations136 = "643321343331003311101111111111111111101111121"
)

const (
	interpretedFrames = 2 // so many codes
	scriptFrames      = 4
	maxCalls          = 4096
	maxTranslated     = 1 << 18 // codes of all translations of a Code
	entryWords        = 3       // of the deoptimization data: bytecode offset, translation, return address
	entriesBehind     = 4       // elements between the index of inlining positions and the first entry
)

// A frameOf is an interpreted frame that a compiler has made no frame for, or one for several.
type frameOf struct {
	literal  int32
	bytecode int32
}

// translation takes one from its beginning.
type translation struct {
	counts   string
	b        []byte
	at       int
	previous int  // in the earlier translation that is repeated
	repeated int  // codes that still come from there, the one at hand included
	since    int  // codes since previous was brought up to date
	cut      bool // a number is not there
	left     *int
}

// frames returns the interpreted frames that a translation leads to, outermost first; nil if it
// makes no sense, or is not all there.
func (t *translation) frames() (all []frameOf) {
	if t.at < 0 || t.at >= len(t.b) {
		return nil
	}
	begin := t.at
	t.at++ // whether there is feedback
	back := int(t.operand())
	t.operand() // frames
	count := signMagnitude(t.operand())
	if back > 0 {
		t.previous = begin - back
	}
	t.since = 1
	for count > 0 {
		code, ok := t.next()
		if !ok {
			return nil
		}
		n := int(t.counts[code] - '0')
		if code < interpretedFrames {
			all = append(all, frameOf{bytecode: signMagnitude(t.operand()), literal: signMagnitude(t.operand())})
			n -= 2
		}
		if code < scriptFrames {
			count--
		}
		for range n {
			t.operand()
		}
	}
	if t.cut {
		return nil
	}
	return all
}

// next returns the next code.
func (t *translation) next() (code byte, ok bool) {
	if *t.left--; *t.left < 0 {
		return 0, false
	}
	if t.repeated > 0 {
		t.repeated--
	}
	if t.repeated > 0 {
		return t.earlier()
	}
	if t.at >= len(t.b) {
		return 0, false
	}
	code = t.b[t.at]
	t.at++
	if int(code) < len(t.counts)-1 {
		t.since++
		return code, true
	}
	repeated := int(code) - len(t.counts)
	if repeated < 0 {
		repeated = int(t.operand() & (1<<30 - 1))
	}
	for ; t.since > 0; t.since-- {
		code, ok := t.earlier()
		if !ok {
			return 0, false
		}
		for range t.counts[code] - '0' {
			t.take(&t.previous)
		}
	}
	if t.repeated = repeated; repeated == 0 {
		return 0, false
	}
	return t.earlier()
}

// earlier returns the next code of the earlier translation.
func (t *translation) earlier() (code byte, ok bool) {
	if t.previous < 0 || t.previous >= len(t.b) {
		return 0, false
	}
	code = t.b[t.previous]
	t.previous++
	return code, int(code) < len(t.counts)-1
}

func (t *translation) operand() uint64 {
	if t.repeated > 0 {
		return t.take(&t.previous)
	}
	return t.take(&t.at)
}

// take takes a number as unsigned does, and notes one that is not there. Others follow those that are used, so one of
// which the end is missing is noted, too.
func (t *translation) take(at *int) uint64 {
	if *at < 0 || *at >= len(t.b) {
		t.cut = true
		return 0
	}
	rest := t.b[*at:]
	v := unsigned(&rest)
	*at = len(t.b) - len(rest)
	return v
}

// signMagnitude has the sign in bit 0.
func signMagnitude(v uint64) int32 {
	if v&1 != 0 {
		return -int32(v >> 1 & (1<<31 - 1))
	}
	return int32(v >> 1 & (1<<31 - 1))
}

// A call is where code goes on behind one, with the frames that the interpreter would have there.
type call struct {
	offset uint32 // in the code
	first  int32  // of the frames, innermost first
	count  int32
}

// A callFrame is a function and the line of its call.
type callFrame struct{ function, line int32 }

// callAt returns the frames of the call that goes on at an offset, nil if there is none.
func (c *compiled) callAt(offset uint32) []callFrame {
	i := sort.Search(len(c.calls), func(i int) bool { return c.calls[i].offset >= offset })
	if i == len(c.calls) || c.calls[i].offset != offset {
		return nil
	}
	k := &c.calls[i]
	return c.frames[k.first : k.first+k.count]
}

// readCalls reads what the deoptimization data say of calls.
func (r *codeReader) readCalls() error {
	first := uint64(r.release.inline) + entriesBehind
	n, err := r.length(r.code.deopt, int(first)+entryWords*maxCalls)
	if err != nil || n < int(first) {
		return err
	}
	checks, err := r.readExits()
	if err != nil {
		return err
	}
	words := make([]byte, 8*(n-int(first)))
	if err := r.read(words, r.code.deopt, arrayData+8*first); err != nil {
		return err
	}
	b, safepoints, err := r.readTranslations()
	if err != nil {
		return err
	}
	left := maxTranslated
	for i := uint32(0); len(words) >= 8*entryWords; i, words = i+1, words[8*entryWords:] {
		at, pc := word(words, 8), word(words, 16)
		if !isSmi(at) || !isSmi(pc) || smi(pc) <= 0 {
			continue // no call
		}
		offset := uint32(smi(pc))
		if r.isMaglev() {
			s, ok := safepoints[i]
			if !ok || s.trampoline != offset {
				continue
			}
			offset = s.pc
		}
		if n := i - checks; i >= checks && int(n) < len(r.to.exits.backs) {
			r.to.exits.backs[n] = offset
		}
		if b == nil {
			continue
		}
		t := translation{counts: r.release.translations, b: b, at: int(smi(at)), left: &left}
		if err := r.addCall(offset, t.frames()); err != nil {
			return err
		}
	}
	sort.Slice(r.to.calls, func(i, j int) bool { return r.to.calls[i].offset < r.to.calls[j].offset })
	return nil
}

// readTranslations returns those of all calls, and the safepoints of Maglev; none for a release
// whose source position tables have the calls.
func (r *codeReader) readTranslations() ([]byte, map[uint32]safepoint, error) {
	if r.release.translations == "" {
		return nil, nil, nil
	}
	object, err := r.word(r.code.deopt, arrayData)
	if err != nil {
		return nil, nil, err
	}
	b, _, err := r.bytes(object, maxTableBytes) // a translation that is cut says so
	if err != nil {
		return nil, nil, err
	}
	safepoints, err := r.readSafepoints()
	return b, safepoints, err
}

// addCall notes the frames of a call, which come outermost first.
func (r *codeReader) addCall(offset uint32, frames []frameOf) error {
	if len(frames) > maxFrames {
		return tooMuch()
	}
	k := call{offset: offset, first: int32(len(r.to.frames))}
	for i := len(frames) - 1; i >= 0; i-- {
		function, err := r.literal(frames[i].literal)
		if err != nil {
			return err
		}
		if function < 0 {
			r.to.frames = r.to.frames[:k.first]
			return nil
		}
		line, _ := r.linesOf[function].at(uint32(max(frames[i].bytecode, 0)))
		r.to.frames = append(r.to.frames, callFrame{function, int32(line)})
		k.count++
	}
	if k.count > 0 {
		r.to.calls = append(r.to.calls, k)
	}
	return nil
}
