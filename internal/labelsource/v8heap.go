//go:build linux

package labelsource

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// v8Of returns the layout of the V8 among the mappings of a process: of the
// program that it runs or of a library.
func v8Of(env *environment) (layout v8heap.Layout, err error) {
	err = fmt.Errorf("%w: there is none in the process", v8heap.ErrUnknown)
	for i := range env.Mappings {
		f := env.Mappings[i].File
		if f == nil || f.Err() != nil || errors.Is(f.Facts().V8Err, v8heap.ErrNoV8) || !(&image{file: f}).runs(env) {
			continue
		}
		known := f.Facts()
		if known.V8Err != nil {
			return v8heap.Layout{}, known.V8Err
		}
		if err == nil && layout != known.V8 {
			return v8heap.Layout{}, fmt.Errorf("%w: there are several in the process", v8heap.ErrUnknown)
		}
		layout, err = known.V8, nil
	}
	return layout, err
}
