package v8js

import (
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// Bounds of what is read of scripts, and kept of those of a process.
const (
	maxSourceChars = 16 << 20
	maxLines       = 1 << 20
	maxScriptBytes = 2 << 20 // of all scripts that are kept, unless one alone has more
	sourceAtOnce   = 64 << 10
)

// script is one that functions are of.
type script struct {
	file   string
	first  int      // number of the first line, less 1
	ends   []uint32 // positions of the characters that end lines
	cut    bool     // there are more
	source bool     // ends are known
}

// bytes is the memory that a script takes where it is kept.
func (s *script) bytes() int {
	return int(unsafe.Sizeof(keptScript{})+unsafe.Sizeof(*s)) + len(s.file) + 4*cap(s.ends)
}

// line returns the line of a position, 0 if it is not known.
func (s *script) line(position int32) int {
	if position < 0 || !s.source {
		return 0
	}
	n := sort.Search(len(s.ends), func(i int) bool { return s.ends[i] >= uint32(position) })
	if n == len(s.ends) && s.cut {
		return 0
	}
	return s.first + n + 1
}

type scriptKey struct {
	at, id, source uint64
	length         int
}

// scripts are those of a process that were read last: to go through a source takes longer than
// all else.
type scripts struct {
	mu    sync.Mutex
	known []keptScript // the one that was used last is the last
	held  int          // bytes of known
}

type keptScript struct {
	key scriptKey
	*script
}

// bytes is the memory that they take.
func (s *scripts) bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held + (cap(s.known)-len(s.known))*int(unsafe.Sizeof(keptScript{}))
}

func (s *scripts) get(key scriptKey) *script {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.known {
		if s.known[i].key == key {
			found := s.known[i]
			s.known = append(slices.Delete(s.known, i, i+1), found)
			return found.script
		}
	}
	return nil
}

func (s *scripts) put(key scriptKey, of *script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = append(s.known, keptScript{key, of})
	for s.held += of.bytes(); s.held > maxScriptBytes && len(s.known) > 1; {
		s.held -= s.known[0].script.bytes()
		s.known = slices.Delete(s.known, 0, 1)
	}
}

// scriptOf returns the script of a function. One that is not kept, for lack of room, is read once
// for all functions of an object.
func (p *process) scriptOf(h *heap, of *shared) (*script, error) {
	var b [scriptBytes]byte
	if err := h.read(b[:], of.script, 0); err != nil {
		return nil, err
	}
	text, err := h.resolve(h.lead(b[:], of.script, scriptSource))
	if err != nil {
		text = pieces{n: -1} // undefined, of a script that has none
	}
	key := scriptKey{of.script, of.id, text.addr, text.n}
	s := h.scripts[key]
	if s == nil {
		s = p.scripts.get(key)
	}
	if s == nil {
		if s, err = h.readScript(of.script, b[:], text); err != nil {
			return nil, err
		}
		h.unkept = append(h.unkept, keptScript{key, s})
	}
	if h.scripts == nil {
		h.scripts = map[scriptKey]*script{}
	}
	h.scripts[key] = s
	return s, nil
}

// readScript reads a script, of which the begin and the source are known.
func (h *heap) readScript(at uint64, b []byte, text pieces) (s *script, err error) {
	s = &script{}
	if offset := word(b, scriptLineOffset); isSmi(offset) && smi(offset) > 0 {
		s.first = int(smi(offset))
	}
	if name := h.lead(b, at, scriptName); isObject(name) {
		if s.file, err = h.inferred(name); err != nil {
			return nil, err
		}
	}
	if text.n >= 0 && text.first == 0 {
		err = h.readLines(s, text.characters)
	}
	return s, err
}

// readLines finds the ends of lines: LF, CR without LF behind it, and two separators of Unicode.
func (h *heap) readLines(s *script, text characters) error {
	s.source = true
	if text.n > maxSourceChars {
		text.n, s.cut = maxSourceChars, true
	}
	width := 1
	if text.wide {
		width = 2
	}
	if h.sources += text.n; h.sources > maxReadSources {
		return tooMuch()
	}
	b := make([]byte, width*min(text.n, sourceAtOnce))
	before, at := rune(0), 0
	for at < text.n {
		n := min(text.n-at, sourceAtOnce)
		if err := h.readSource(b[:n*width], text.addr+uint64(at*width)); err != nil {
			return err
		}
		for i := range n {
			c := rune(b[i*width])
			if text.wide {
				c |= rune(b[i*width+1]) << 8
			}
			if before == '\r' && c != '\n' {
				s.ends = append(s.ends, uint32(at+i-1))
			}
			if c == '\n' || c == 0x2028 || c == 0x2029 {
				s.ends = append(s.ends, uint32(at+i))
			}
			before = c
		}
		if at += n; len(s.ends) > maxLines {
			s.cut = true
			break
		}
	}
	if before == '\r' {
		s.ends = append(s.ends, uint32(at-1))
	}
	if h.lines += len(s.ends); h.lines > maxReadLines {
		return tooMuch()
	}
	s.ends = slices.Clip(s.ends)
	return nil
}
