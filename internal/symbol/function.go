package symbol

// Function is a function that an address is in.
type Function struct {
	Name       string // for people: demangled, valid UTF-8
	SystemName string // as in the symbol table, valid UTF-8
	Start      uint64 // its first address, of the kind that was looked up
}
