//go:build linux

package executable

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/cpython"
	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/hotspot"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/v8js"
)

// A recognizer returns the language runtime of one kind in a file. The error is
// langruntime.ErrNone, wrapped, if the file holds none.
type recognizer func(*elffile.File) (langruntime.Runtime, error)

// recognizers are those of all kinds.
func recognizers() [record.NumRuntimes]recognizer {
	return [...]recognizer{
		record.RuntimeNone:    func(*elffile.File) (langruntime.Runtime, error) { return nil, langruntime.ErrNone },
		record.RuntimeCPython: recognizerOf(cpython.LayoutOf),
		record.RuntimeHotSpot: recognizerOf(hotspot.LibraryOf),
		record.RuntimeV8:      recognizerOf(v8js.LayoutOf),
	}
}

func recognizerOf[R langruntime.Runtime](of func(*elffile.File) (R, error)) recognizer {
	return func(e *elffile.File) (langruntime.Runtime, error) {
		runtime, err := of(e)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return runtime, nil
	}
}

// runtimeOf returns the language runtime in a file.
func runtimeOf(e *elffile.File) (runtime langruntime.Runtime, err error) {
	for _, recognize := range recognizers() {
		if runtime, err = recognize(e); !errors.Is(err, langruntime.ErrNone) {
			break
		}
	}
	return runtime, err
}
