package v8js

import (
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// anonymous is the name of a function that has none.
const anonymous = "<anonymous>"

// shared is a SharedFunctionInfo: what all closures of a function have in common.
type shared struct {
	at     uint64
	hash   uint64 // what a cookie is made of
	data   uint64
	name   uint64
	script uint64 // 0: it is none of a script
	id     uint64 // of the script, a small integer
}

// readShared reads a SharedFunctionInfo, and hashes it as v8_shared of v8read.bpf.h does.
func (h *heap) readShared(object uint64) (shared, error) {
	at, err := h.of(object, h.types.shared, "SharedFunctionInfo")
	if err != nil {
		return shared{}, err
	}
	var b [sharedBytes]byte
	if err := h.read(b[:], at, 0); err != nil {
		return shared{}, err
	}
	p := &h.process
	s := shared{at: at, data: h.lead(b[:], at, uint64(p.SharedData)), name: h.lead(b[:], at, uint64(p.SharedName))}
	script, t, err := h.typeOf(h.lead(b[:], at, uint64(p.SharedScript)))
	if err != nil {
		return shared{}, err
	}
	if t != h.types.script {
		s.hash = record.Mix(record.Mix(at, s.name), word(b[:], int(p.SharedBuiltin)))
		return s, nil
	}
	s.script = script
	var of [scriptBytes]byte
	if err := h.read(of[:], script, 0); err != nil {
		return shared{}, err
	}
	s.id = word(of[:], scriptID)
	var length [4]byte
	if err := h.read(length[:], word(of[:], scriptSource), stringLength); err != nil {
		return shared{}, err
	}
	s.hash = record.Mix(at, s.id)
	s.hash = record.Mix(s.hash, uint64(binary.LittleEndian.Uint32(b[p.SharedLiteral:])))
	s.hash = record.Mix(s.hash, uint64(binary.LittleEndian.Uint32(length[:])))
	return s, nil
}

func cookieOf(hash uint64) uint32 { return uint32(hash >> 32) }

// named is what people call a function.
type named struct {
	name, file string
	start      int // line; 0 if it is not known
}

// name reads what a function is called and where it begins.
func (p *process) name(h *heap, s *shared) (named, *script, error) {
	var f named
	position := int32(-1)
	switch at, t, err := h.nameType(s.name); {
	case err != nil:
		return f, nil, err
	case t == h.types.scopeInfo:
		if f.name, position, err = h.scope(at); err != nil {
			return f, nil, err
		}
	case at != 0:
		if f.name, err = h.text(at, maxNameChars); err != nil {
			return f, nil, err
		}
	}
	if f.name == "" {
		f.name = anonymous
	}
	if s.script == 0 {
		return f, nil, nil
	}
	script, err := p.scriptOf(h, s)
	if err != nil {
		return f, nil, err
	}
	f.file = script.file
	if position >= 0 {
		f.start = script.line(position)
	}
	return f, script, nil
}

// nameType returns what the name of a function is, 0 if there is none.
func (h *heap) nameType(name uint64) (at uint64, t uint16, err error) {
	if !isObject(name) {
		return 0, 0, nil
	}
	at, t, err = h.typeOf(name)
	if err == nil && t != h.types.scopeInfo && t >= firstNonstring {
		err = gone("name")
	}
	return at, t, err
}

// Bits of the flags of a ScopeInfo, src/objects/scope-info.tq.
const (
	scopeType             = 15
	scopeSavedClass       = 1 << 10
	scopeFunctionVariable = 3 << 12
	scopeInferredName     = 1 << 14
)

// Words of a ScopeInfo: map, flags, parameters, locals. From the fourth on it depends.
const (
	scopeFlags     = 1
	scopeLocals    = 3
	scopeFixed     = 4
	maxInlineNames = 75 // kScopeInfoMaxInlinedLocalNamesSize
	maxScopeLocals = 16 << 10
)

// scope returns name and position of the function whose ScopeInfo it is; -1: not known.
func (h *heap) scope(at uint64) (name string, position int32, err error) {
	var head [8 * (scopeFixed + 1)]byte
	if err := h.read(head[:], at, 0); err != nil {
		return "", -1, err
	}
	flags := word(head[:], 8*scopeFlags)
	if isSmi(flags) {
		flags >>= 32
	}
	locals := word(head[:], 8*scopeLocals)
	if !isSmi(locals) || smi(locals) < 0 || smi(locals) > maxScopeLocals {
		return "", -1, gone("ScopeInfo")
	}
	next, n := uint64(scopeFixed), uint64(smi(locals))
	position = -1
	if h.release.early {
		position = smi(word(head[:], 8*scopeFixed))
		next += 2
	}
	if flags&scopeType == h.release.moduleScope() {
		next++
	}
	if n < maxInlineNames {
		next += n // names
	} else {
		next++ // a table of them
	}
	next += n // what they are
	if flags&scopeSavedClass != 0 {
		next++
	}
	var rest [8 * 4]byte // name, its slot, inferred name, position
	if err := h.read(rest[:], at, 8*next); err != nil {
		return "", -1, err
	}
	i := uint64(0)
	if flags&scopeFunctionVariable != 0 {
		if w := h.lead(rest[:], at+8*next, 0); isObject(w) {
			if name, err = h.text(w, maxNameChars); err != nil {
				return "", -1, err
			}
		}
		i += 2
	}
	if flags&scopeInferredName != 0 {
		if w := h.lead(rest[:], at+8*next, 8*i); name == "" && isObject(w) {
			name, err = h.inferred(w)
			if err != nil {
				return "", -1, err
			}
		}
		i++
	}
	if !h.release.early {
		if w := word(rest[:], int(8*i)); isSmi(w) {
			position = smi(w)
		}
	}
	return name, position, nil
}

// inferred reads a name that V8 has made up, or undefined.
func (h *heap) inferred(object uint64) (string, error) {
	_, t, err := h.typeOf(object)
	if err != nil || t >= firstNonstring {
		return "", err
	}
	return h.text(object, maxNameChars)
}

// bytecode returns the BytecodeArray of a function and its code of the baseline compiler,
// 0 if there is none.
func (h *heap) bytecode(data uint64) (bytecode, baseline uint64, err error) {
	for range 3 {
		if !isObject(data) {
			return 0, 0, nil // a builtin
		}
		at, t, err := h.typeOf(data)
		if err != nil {
			return 0, 0, err
		}
		switch t {
		case h.types.bytecode:
			return at, baseline, nil
		case h.types.interpreterData:
			data, err = h.word(at, 8)
		case h.types.code:
			baseline = at
			data, err = h.word(at, uint64(h.release.deopt))
		default:
			return 0, 0, nil // an embedder's function, or one that is not compiled any more
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return 0, 0, gone("bytecode")
}

// Read implements langruntime.Process.
func (p *process) Read(mem langruntime.Memory, object uint64, cookie uint32) (langruntime.Function, error) {
	h := &heap{mem: mem, Layout: p.layout}
	at, t, err := h.typeOf(object | 1)
	if err != nil {
		return nil, err
	}
	read := p.readFunction
	if t == h.types.code {
		read = p.readOptimized
	}
	f, hash, err := read(h, at, cookie)
	if err != nil {
		return nil, err
	}
	unchanged := h.unchanged()
	if again, err := h.hashOf(at, t); err != nil || again != hash || !unchanged {
		return nil, fmt.Errorf("%w: it was replaced", langruntime.ErrGone)
	}
	for _, s := range h.unkept {
		p.scripts.put(s.key, s.script)
	}
	return f, nil
}

// hashOf returns what the cookies of a SharedFunctionInfo or of a Code are made of.
func (h *heap) hashOf(at uint64, t uint16) (uint64, error) {
	if t == h.types.code {
		c, err := h.readCode(at)
		if err != nil {
			return 0, err
		}
		s, err := h.optimized(&c)
		return c.hash(s.hash), err
	}
	s, err := h.readShared(at)
	return s.hash, err
}

// readFunction reads the function of a SharedFunctionInfo.
func (p *process) readFunction(h *heap, at uint64, cookie uint32) (langruntime.Function, uint64, error) {
	s, err := h.readShared(at)
	if err != nil {
		return nil, 0, err
	}
	bytecode, baseline, err := h.bytecode(s.data)
	if err != nil {
		return nil, 0, err
	}
	var c code
	if cookieOf(s.hash) != cookie {
		if baseline == 0 {
			return nil, 0, fmt.Errorf("%w: another one is there", langruntime.ErrGone)
		}
		if c, err = h.readCode(baseline); err != nil {
			return nil, 0, err
		}
		if cookieOf(c.hash(s.hash)) != cookie {
			return nil, 0, fmt.Errorf("%w: another one is there", langruntime.ErrGone)
		}
	}
	f := &function{}
	named, script, err := p.name(h, &s)
	f.named = named
	if err != nil || script == nil || bytecode == 0 {
		return f, s.hash, err
	}
	f.lines, err = h.bytecodeLines(bytecode, script)
	f.partial = f.lines == nil
	if err == nil && c.start != 0 {
		f.lines, err = h.baselineLines(&c, bytecode, f.lines)
	}
	return f, s.hash, err
}
