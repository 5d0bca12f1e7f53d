package langruntime

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Errors of runtimes.
var (
	// ErrNone says that a file holds no runtime of the kind.
	ErrNone = errors.New("no language runtime")
	// ErrUnsupported says that it is one whose frames cannot be read, and why.
	ErrUnsupported = errors.New("unsupported language runtime")
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
	// Version of the runtime, for people.
	Version() string
	// Process returns what the sampling programs have to know of a process that maps the file
	// with this load bias. Its owner is not set.
	Process(bias uint64) record.RuntimeProcess
	// Read reads what the object of a frame stands for. The error is ErrGone, wrapped, if it
	// is not the one that the cookie was made of.
	Read(mem Memory, object uint64, cookie uint32) (Function, error)
}

// A Function is what the object of a frame stands for. It is not changed.
type Function interface {
	// Frame returns the function with the line of a position.
	Frame(position uint32) Frame
	// Bytes is the memory that it takes.
	Bytes() int
}

// Frame is a place in a function. The strings are valid UTF-8.
type Frame struct {
	Name      string
	File      string // "" if not known
	Line      int    // 0 if not known
	StartLine int    // of the function; 0 if not known
}
