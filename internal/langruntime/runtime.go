package langruntime

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Errors of runtimes.
var (
	// ErrNone says that a file holds no runtime of the kind.
	ErrNone = errors.New("no language runtime")
	// ErrUnsupported says that it is one of a version, a build or for an architecture whose frames
	// are not known, and which.
	ErrUnsupported = errors.New("unsupported language runtime")
	// ErrUnreadable says that it cannot be told where its frames are, and why: what it says of itself
	// lacks something or makes no sense.
	ErrUnreadable = errors.New("unreadable language runtime")
	// ErrStarting says that a process has not set its runtime up yet, as far as can be told.
	ErrStarting = errors.New("the language runtime is starting")
	// ErrGone says that the object of a frame is not there any more.
	ErrGone = errors.New("the object has gone")
)

// Memory reads a process.
type Memory interface {
	// ReadAt fills p from the address addr, or returns an error.
	ReadAt(p []byte, addr uint64) error
}

// A Runtime is what is known of a language runtime in a file. It is not changed, and may be
// used from everywhere.
type Runtime interface {
	// Kind of the runtime.
	Kind() record.RuntimeKind
	// Open returns the runtime of a process that maps the file with this load bias. The error
	// wraps ErrStarting if the process has not set it up yet, or ErrUnsupported.
	Open(mem Memory, bias uint64) (Process, error)
}

// A Process is the language runtime of one process. It is not changed: what it has read of the
// process holds for as long as the process has the file there.
type Process interface {
	// Kind of the runtime.
	Kind() record.RuntimeKind
	// Record returns what the sampling programs have to know. Its owner is not set.
	Record() record.RuntimeProcess
	// Read reads what the object of a frame stands for. The error is ErrGone, wrapped, if it
	// is not the one that the cookie was made of.
	Read(mem Memory, object uint64, cookie uint32) (Function, error)
}

// A Holder is a Process that keeps something of what it has read, in bounded memory.
type Holder interface {
	// Held is the memory that it takes.
	Held() int
}

// A Function is what the object of a frame stands for. It is not changed.
type Function interface {
	// Frames appends the function with the line of a position; the functions that a compiler
	// has put into it there come before it, the innermost first.
	Frames(to []Frame, position uint32) []Frame
	// Bytes is the memory that it takes.
	Bytes() int
}

// A Partial is a Function that may lack something which a later reading has.
type Partial interface {
	// Partial reports whether it does.
	Partial() bool
}

// Frame is a place in a function. The strings are valid UTF-8.
type Frame struct {
	Name      string
	File      string // "" if not known
	Line      int    // 0 if not known
	StartLine int    // of the function; 0 if not known
}
