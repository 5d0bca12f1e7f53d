//go:build linux

package process

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// v8Of returns the layout of the V8 among the mappings of a process: of the
// program that it runs or of a library.
func v8Of(mappings []ExecMapping, env *sourceContext) (layout v8heap.Layout, err error) {
	err = fmt.Errorf("%w: there is none in the process", v8heap.ErrUnknown)
	for i := range mappings {
		f := mappings[i].File
		if f == nil || f.err != nil || errors.Is(f.facts.v8Err, v8heap.ErrNoV8) || !(&image{file: f}).runs(env) {
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
