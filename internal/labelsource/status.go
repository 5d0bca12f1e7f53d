//go:build linux

package labelsource

import (
	"errors"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// State says whether labels can be read from a source.
type State uint8

// The states of a label source.
const (
	Active             State = iota // published
	NotRelocated                    // the dynamic loader is not done; tried again
	NoRelocation                    // nothing in the library or its loader leads to the variable
	UnsupportedVersion              // custom_labels_abi_version is not the ABI's; a V8 or a Go that is not known
	UnsupportedSchema               // the process context says that thread contexts are of another form
	UnsupportedModel                // resolver, C library, machine or Go's slot not known
	Undefined                       // the loader found no definition
	NotProgram                      // an executable that is not what this process runs
	Unreadable                      // the file or the memory cannot be read or make no sense
	Duplicate                       // leads to the variable of an active source
	OverLimit                       // there are record.MaxLabelSources others
)

var stateNames = [...]string{
	"active", "not_relocated", "no_relocation", "unsupported_version",
	"unsupported_schema", "unsupported_model",
	"undefined", "not_program", "unreadable", "duplicate", "over_limit",
}

// String returns the name used in logs and by labelprof.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Status is one label source of a process and what became of it.
type Status struct {
	Path     string // of the file that defines it
	ABI      record.ABI
	Model    string              // TLS model; "" if there is no plan
	Location tlsresolve.Location // if Active or Duplicate
	V8       v8heap.Layout       // likewise; record.ABIThreadContextNodeJS only
	Go       golabels.Plan       // as far as it is known; record.ABIGo only
	State    State
	Err      string // why it is not active
}

// Source is the label source, if it is Active or Duplicate.
func (s *Status) Source() record.LabelSource {
	source := s.Location.Source(s.ABI)
	source.V8Field, source.V8MapType = s.V8.Field, s.V8.MapType
	source.Go, source.GoMap = s.Go.Layout.GoLayout, s.Go.Layout.Map
	return source
}

var (
	errIncomplete = errors.New("library not completely mapped yet")
	errSettling   = errors.New("slot relocated just now")
	errNotProgram = errors.New("executable is not the program that runs")
	errVersion    = errors.New("unsupported " + executable.VersionSymbol)
	errSchema     = errors.New("thread contexts of another form")
	errDuplicate  = errors.New("same variable as another source")
	errOverLimit  = errors.New("too many label sources")
)

// stateOf classifies what became of a source.
func stateOf(err error) State {
	for _, c := range []struct {
		err   error
		state State
	}{
		{nil, Active},
		{errIncomplete, NotRelocated},
		{errSettling, NotRelocated},
		{tlsresolve.ErrNotRelocated, NotRelocated},
		{tlsresolve.ErrNoRelocation, NoRelocation},
		{errVersion, UnsupportedVersion},
		{v8heap.ErrUnknown, UnsupportedVersion},
		{golabels.ErrVersion, UnsupportedVersion},
		{golabels.ErrSlot, UnsupportedModel},
		{errSchema, UnsupportedSchema},
		{tlsresolve.ErrAmbiguous, UnsupportedModel},
		{tlsresolve.ErrUnknownResolver, UnsupportedModel},
		{tlsresolve.ErrUnknownLibc, UnsupportedModel},
		{tlsresolve.ErrLayout, UnsupportedModel},
		{tlsresolve.ErrMachine, UnsupportedModel},
		{tlsresolve.ErrUndefinedWeak, Undefined},
		{errNotProgram, NotProgram},
		{errDuplicate, Duplicate},
		{errOverLimit, OverLimit},
	} {
		if errors.Is(err, c.err) {
			return c.state
		}
	}
	return Unreadable
}

// maxErrorBytes are kept of an error: texts of the target may be in it.
const maxErrorBytes = 512

func errorText(err error) string {
	text := err.Error()
	if len(text) > maxErrorBytes {
		return strings.ToValidUTF8(text[:maxErrorBytes], "") + "…"
	}
	return text
}

// Damaged reports whether a file says that it defines labels, or may, but is
// too damaged to find them, or takes too much to read.
func Damaged(f *executable.File) bool {
	for i := range f.Facts().Plans {
		if p := &f.Facts().Plans[i]; stateOf(p.Err) == Unreadable || p.Goroutines.Limited {
			return true
		}
	}
	return false
}
