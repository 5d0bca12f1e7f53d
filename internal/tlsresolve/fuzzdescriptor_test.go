package tlsresolve

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// codePattern is code as a disassembler lists it, as pairs of hex digits; "??"
// is any byte and "r?" the ModRM byte of a load from a 32-bit address.
type codePattern []func(byte) bool

func pattern(text string) codePattern {
	var p codePattern
	for _, field := range strings.Fields(text) {
		switch field {
		case "r?":
			p = append(p, func(b byte) bool {
				return b == 0x04 || b == 0x0c || b == 0x14 || b == 0x1c || b == 0x24 || b == 0x2c || b == 0x34 || b == 0x3c
			})
		case "x?": // the lowest byte of mrs: 0x40 | register
			p = append(p, func(b byte) bool { return b>>5 == 2 })
		default:
			b, err := hex.DecodeString(field)
			if err != nil {
				panic(err)
			}
			p = append(p, func(c byte) bool { return c == b[0] })
		}
	}
	return p
}

func (p codePattern) at(code []byte) bool {
	if len(code) < len(p) {
		return false
	}
	for i, ok := range p {
		if !ok(code[i]) {
			return false
		}
	}
	return true
}

// resolverReference classifies by patterns alone.
type resolverReference struct {
	landings           []codePattern // each at most once, in this order
	static, weak, load codePattern
	end                codePattern // where the function ends
	step               int         // bytes of an instruction, or 1
}

func (r *resolverReference) classify(code []byte) resolver {
	for _, l := range r.landings {
		if l.at(code) {
			code = code[len(l):]
		}
	}
	if r.static.at(code) {
		return resolverStatic
	}
	if r.weak.at(code) {
		return resolverWeak
	}
	for ; len(code) > 0; code = code[min(r.step, len(code)):] {
		if r.load.at(code) {
			return resolverDynamic
		}
		if r.end != nil && r.end.at(code) {
			break
		}
	}
	return resolverUnknown
}

// FuzzDescriptor holds the recognition of TLS descriptor code against patterns.
// [0] is the machine.
func FuzzDescriptor(f *testing.F) {
	x86 := &resolverReference{
		landings: []codePattern{pattern("f3 0f 1e fa")},
		static:   pattern("48 8b 40 08 c3"),
		weak:     pattern("48 8b 40 08 64 48 2b 04 25 00 00 00 00 c3"),
		load:     pattern("64 48 8b r? 25 08 00 00 00"),
		step:     1,
	}
	arm := &resolverReference{
		landings: []codePattern{pattern("1f 20 03 d5"), pattern("5f 24 03 d5")},
		static:   pattern("00 04 40 f9 c0 03 5f d6"),
		weak:     pattern("e1 0f 1f f8 00 04 40 f9 41 d0 3b d5 00 00 01 cb"),
		load:     pattern("x? d0 3b d5"),
		end:      pattern("c0 03 5f d6"),
		step:     4,
	}
	var seeds [][]byte
	for i, codes := range [][]string{
		{x86Static, x86Landing + x86Static, x86Weak, x86Landing + x86Weak, x86Landing + "\x48\x89\x74\x24\xf0\x64\x48\x8b\x34\x25\x08\x00\x00\x00"},
		{armStatic, armNOP + armStatic, armBTI + armStatic, armNOP + armBTI + armStatic, armWeak, armBTI + armWeak, "\xe1\x0b\xbe\xa9\xe3\x13\x01\xa9\x44\xd0\x3b\xd5"},
	} {
		for _, code := range codes {
			seeds = append(seeds, append([]byte{byte(i)}, code...))
		}
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) == 0 {
			return
		}
		var code [entryBytes]byte
		copy(code[:], data[1:])
		got, want := x86Resolver(code[:]), x86.classify(code[:])
		if data[0]&1 != 0 {
			got, want = armResolver(code[:]), arm.classify(code[:])
		}
		if got != want {
			t.Fatalf("%x: %d, want %d", code, got, want)
		}
	})
}
