package tlsresolve

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// Errors of NewPlan: they hold for the file, whatever process maps it.
var (
	// ErrNoSymbol says that the file does not define the thread-local
	// variable.
	ErrNoSymbol = errors.New("thread-local symbol not defined")

	// ErrAmbiguous says that the file has several such variables, of which none is exported.
	ErrAmbiguous = elffile.ErrAmbiguous
)

// Errors of Plan.Resolve. ErrNotRelocated and ErrUnknownResolver may go away
// when the loader has done its work, so trying again later makes sense.
var (
	// ErrNoRelocation says that the library defines the variable but holds no
	// relocation that would tell where the loader has put its TLS block, and
	// that the loader does not tell either.
	ErrNoRelocation = errors.New("no TLS relocation for the symbol")

	// ErrNotRelocated says that the dynamic loader has not yet filled the
	// slots.
	ErrNotRelocated = errors.New("TLS slot not relocated yet")

	// ErrUnsure comes with a location: it is right if the slot still says the same when the
	// loader must have filled it.
	ErrUnsure = errors.New("TLS slot that may not be relocated yet")

	// ErrLazy is ErrNotRelocated of a loader that fills the slot when the variable is
	// first used.
	ErrLazy = fmt.Errorf("%w: bound lazily, when it is first used; link with -z now", ErrNotRelocated)

	// ErrUndefinedWeak says that the loader resolved the reference to an
	// undefined weak symbol: there is no variable.
	ErrUndefinedWeak = errors.New("TLS descriptor of an undefined weak symbol")

	// ErrUnknownResolver says that the code of the TLS descriptor is not one
	// that we know.
	ErrUnknownResolver = errors.New("unknown TLS descriptor resolver")

	// ErrUnknownLibc says that the location needs a walk of the DTV, whose
	// layout depends on a C library that is neither glibc nor musl.
	ErrUnknownLibc = errors.New("DTV layout of this C library not known")

	// ErrNoThreadDB says that a C library has no symbols for libthread_db: it
	// is older than glibc 2.34, or no glibc.
	ErrNoThreadDB = errors.New("no symbols for libthread_db in the C library")

	// ErrLayout says that the C library lays out its DTV, or the structures
	// that lead to it, in another way than the one known here.
	ErrLayout = errors.New("unknown layout of thread-local storage in the C library")

	// ErrImplausible says that a slot holds a value that no loader writes.
	ErrImplausible = errors.New("implausible TLS slot")

	// ErrMachine says that the plan is for another machine than the process.
	ErrMachine = errors.New("machine of file and process differ")
)

// Errors of Location.Address. All but a fault mean that this thread has no
// such variable now.
var (
	// ErrNoThreadPointer says that the thread pointer is 0: not known yet.
	ErrNoThreadPointer = errors.New("no thread pointer")

	// ErrNotAllocated says that the thread has never touched the module's TLS
	// block.
	ErrNotAllocated = errors.New("TLS block not allocated")

	// ErrStaleModule says that the thread's DTV is older than the module: its
	// entry may belong to an unloaded module with the same id.
	ErrStaleModule = errors.New("DTV older than the module")
)
