package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Function is a function that an address is in.
type Function struct {
	Name       string // for people: demangled, valid UTF-8
	SystemName string // as in the symbol table, valid UTF-8
	Start      uint64 // its first address, of the kind that was looked up
}

// maxDemangledBits bounds a demangled name to 4 KiB: a short mangled name can
// stand for a very long one.
const maxDemangledBits = 12

func newFunction(name []byte, start uint64) Function {
	system := strings.ToValidUTF8(string(name), "\uFFFD")
	return Function{Name: demangled(system), SystemName: system, Start: start}
}

// maxConversions bounds how many conversion operators a name has that is demangled: the demangler
// reads the template arguments behind one twice (demangleCastTemplateArgs), and so those of the last
// of n 2^n times.
const maxConversions = 3

// conversions counts what may be conversion operators to a type that is a template parameter or made
// of one: cv, not before the length of an identifier. Within identifiers it counts, too.
func conversions(name string) (n int) {
	for i := 0; i+2 < len(name); i++ {
		if name[i:i+2] == "cv" && (name[i+2] < '0' || name[i+2] > '9') {
			n++
		}
	}
	return n
}

// demangled returns a C++ or Rust name in readable form, others as they are.
func demangled(name string) (readable string) {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") {
		return name
	}
	if name[1] == 'Z' && conversions(name) > maxConversions {
		return name
	}
	// The names are the target's. A mistake of the demangler costs one name.
	defer func() {
		if recover() != nil {
			readable = name
		}
	}()
	return strings.ToValidUTF8(demangle.Filter(name, demangle.MaxLength(maxDemangledBits)), "\uFFFD")
}
