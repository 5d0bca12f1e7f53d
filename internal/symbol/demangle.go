package symbol

import (
	"runtime"
	"strings"
	"time"

	"github.com/ianlancetaylor/demangle"
)

const (
	// maxDemangledBits bounds a demangled name to 4 KiB: a short mangled name can
	// stand for a very long one.
	maxDemangledBits = 12
	// maxConversions bounds how many conversion operators a name has that is demangled: the
	// demangler reads the template arguments behind one twice (demangleCastTemplateArgs), and so
	// those of the last of n 2^n times. Nothing else does it read twice.
	maxConversions = 3
	// A C++ name refers to parts of itself (S_, S0_ and so on), and the demangler copies each part
	// that has template parameters or closures: with n references it can copy 1.4^n times what the
	// name is (substitution). A name with few references and few bytes is demangled at once. Of
	// another one the beginning is tried first, and then more of it, by so many references or
	// bytes that it can take some 20 times as long. All trials of a name take maxTrial at most. A Rust name (v0) refers
	// by B_, B0_ and so on, and can have the same read as often without a byte of output.
	cheapReferences, cheapBytes = 16, 256
	moreReferences              = 8
	maxTrial                    = 2 * time.Millisecond // of CPU time; usual names take a quarter at most
	trials                      = 3                    // as the clock may count what the thread has not done
	// maxCostly names take too long, of one file. Then only cheap ones are demangled.
	maxCostly = 8
)

// demangler demangles the names of one file. The zero value is one that is ready.
type demangler struct {
	costly int // names that took too long
}

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

// mangled reports whether a name is one of C++ or Rust.
func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R")
}

// name returns a C++ or Rust name in readable form, others as they are.
func (d *demangler) name(name string) (readable string) {
	if !mangled(name) {
		return name
	}
	// The names are the target's. A mistake of the demangler costs one name.
	defer func() {
		if recover() != nil {
			readable = name
		}
	}()
	if name[1] == 'Z' && conversions(name) > maxConversions || !d.affordable(name) {
		return name
	}
	kept := keepUnderscores(name)
	if readable = demangle.Filter(kept, demangle.MaxLength(maxDemangledBits)); readable == kept {
		return name // it is none
	}
	return strings.ToValidUTF8(readable, "\uFFFD")
}

// affordable reports whether a mangled name can be demangled in a short time.
func (d *demangler) affordable(name string) bool {
	reference := byte('S')
	if name[1] == 'R' {
		reference = 'B'
	}
	references, bytes, left := cheapReferences, cheapBytes, maxTrial
	for i := range len(name) {
		if name[i] == reference {
			references--
		}
		if references >= 0 && i < bytes {
			continue
		}
		if d.costly == maxCostly {
			return false
		}
		took := shortest(name[:i], left)
		if took > left {
			d.costly++
			return false
		}
		left -= took
		references, bytes = moreReferences, i+i/2
		if name[i] == reference {
			references--
		}
	}
	return true
}

// shortest returns how long it takes to demangle a name, as far as that is possible. It tries
// again if that is longer than it may be.
func shortest(name string, most time.Duration) (took time.Duration) {
	for range trials {
		if took = trial(name); took <= most {
			break
		}
	}
	return took
}

// trial returns how long it takes to demangle a name, as far as that is possible.
func trial(name string) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	if name[1] == 'R' { // which is written while it is read
		_, _ = demangle.ToString(name, demangle.MaxLength(maxDemangledBits))
	} else {
		_, _ = demangle.ToAST(name)
	}
	return threadTime() - began
}
