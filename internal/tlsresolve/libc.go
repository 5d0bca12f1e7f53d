package tlsresolve

import (
	"iter"
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
	case strings.HasPrefix(base, "ld-musl-"), strings.HasPrefix(base, "libc.musl-"): // one file
		return Musl
	case strings.HasPrefix(base, "ld-linux-"), strings.HasPrefix(base, "ld-lsb-"), // ld-linux-x86-64.so.2
		strings.HasPrefix(base, "ld-2."), base == "ld.so": // the file behind the name
		return Glibc
	}
	return UnknownLibc
}

// LibcBehind is LibcOf for a process that maps files with these paths. Where musl
// is to run programs that were built for glibc, its loader has the name of glibc's
// by a link, and toolchains of their own give theirs other names; the kernel shows a mapped
// file under its own name.
func LibcBehind(interp string, mapped iter.Seq[string]) Libc {
	libc := LibcOf(interp)
	if libc == Musl || interp == "" {
		return libc
	}
	for file := range mapped {
		switch by := LibcOf(file); {
		case by == Glibc:
			return Glibc
		case by == Musl, path.Base(file) == "libc.so" && LibcOf(interp) == Glibc: // glibc's is libc.so.6 or libc-2.31.so
			libc = Musl
		}
	}
	return libc
}
