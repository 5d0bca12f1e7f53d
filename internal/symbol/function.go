package symbol

import "strings"

// Function is a function that an address is in.
type Function struct {
	Name       string // for people: demangled, valid UTF-8
	SystemName string // as in the symbol table, valid UTF-8
	Start      uint64 // its first address, of the kind that was looked up
}

func newFunction(d *demangler, name []byte, start uint64) Function {
	system := strings.ToValidUTF8(string(name), "\uFFFD")
	return Function{Name: d.name(system), SystemName: system, Start: start}
}
