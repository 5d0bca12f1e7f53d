package symbol

// Language is what code was written in, as far as that matters for its frames.
type Language uint8

// The languages.
const (
	Native Language = iota // anything compiled
	Go
	CPython
	JVM
	V8JS
)

// Frame is a function at an address. Of several at one address, the innermost that
// was inlined comes first. All strings are valid UTF-8.
type Frame struct {
	Name      string // for people: demangled
	File      string // of the source; "" if not known
	Line      int    // of the address or, in what something was inlined into, of the call; 0 if not known
	StartLine int    // of the function; 0 if not known
}
