package tlsresolve

import (
	"path"
	"strings"
)

// Libc is the C library of a process: it decides the layout of the DTV.
type Libc uint8

// The C libraries whose DTV is known.
const (
	UnknownLibc Libc = iota
	Glibc
	Musl
)

// String returns the library's name.
func (l Libc) String() string {
	switch l {
	case Glibc:
		return "glibc"
	case Musl:
		return "musl"
	}
	return "unknown"
}

// LibcOf tells the C library from the path of the dynamic loader: what
// PT_INTERP of the main executable says, or the executable itself when a
// program was started as an argument of its loader. The names of mapped
// libraries say less: both C libraries may be called libc.so.
func LibcOf(interp string) Libc {
	switch base := path.Base(interp); {
	case strings.HasPrefix(base, "ld-musl-"):
		return Musl
	case strings.HasPrefix(base, "ld-linux-"), strings.HasPrefix(base, "ld-lsb-"), // ld-linux-x86-64.so.2
		strings.HasPrefix(base, "ld-2."), base == "ld.so": // the file behind the name
		return Glibc
	}
	return UnknownLibc
}
