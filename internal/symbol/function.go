package symbol

// Function is a function that an address is in.
type Function struct {
	Name string // for people: demangled, valid UTF-8
}
