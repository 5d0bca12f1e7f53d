//go:build linux

package process

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// v8Of returns the layout of the V8 among the mappings of a process that runs a
// program: of the program itself or of a library.
func v8Of(mappings []ExecMapping, program procfs.FileID) (layout v8heap.Layout, err error) {
	err = fmt.Errorf("%w: there is none in the process", v8heap.ErrUnknown)
	for i := range mappings {
		f := mappings[i].File
		if f == nil || f.err != nil || f.facts.executable && f.key != program || errors.Is(f.facts.v8Err, v8heap.ErrNoV8) {
			continue
		}
		if f.facts.v8Err != nil {
			return v8heap.Layout{}, f.facts.v8Err
		}
		if err == nil && layout != f.facts.v8 {
			return v8heap.Layout{}, fmt.Errorf("%w: there are several in the process", v8heap.ErrUnknown)
		}
		layout, err = f.facts.v8, nil
	}
	return layout, err
}
