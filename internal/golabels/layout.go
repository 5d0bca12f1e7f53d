package golabels

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// firstSliceMinor is the release since which labels are a slice.
const firstSliceMinor = 24

// layoutOfRelease has the layouts of the runtimes of Go's releases, which are the
// same on x86-64 and aarch64. A test compares them with the debug information of
// programs built by those that are at hand.
func layoutOfRelease(minor int) (Layout, bool) {
	switch minor {
	case 22:
		return Layout{record.GoLayout{GM: 48, GLabels: 344, MProcID: 72, MCurG: 192}, true}, true
	case 23:
		return Layout{record.GoLayout{GM: 48, GLabels: 352, MProcID: 72, MCurG: 192}, true}, true
	case 24:
		return Layout{record.GoLayout{GM: 48, GLabels: 352, MProcID: 72, MCurG: 192}, false}, true
	case 25:
		return Layout{record.GoLayout{GM: 48, GLabels: 344, MProcID: 64, MCurG: 184}, false}, true
	case 26, 27:
		return Layout{record.GoLayout{GM: 48, GLabels: 352, MProcID: 64, MCurG: 184}, false}, true
	}
	return Layout{}, false
}

// findLayout prefers what the program says itself: its toolchain may have been
// changed without a change of its version. limited: not all of that was read.
func findLayout(f *elffile.File, version string) (l Layout, fromDWARF, limited bool, err error) {
	release, known := minor(version)
	types, err := readTypes(f)
	limited = cutShort(err)
	if err == nil {
		l, err = types.layout()
	}
	if err == nil && types.form == formUnknown {
		// The program does not refer to the labels that it could have.
		switch {
		case known && release < firstSliceMinor:
			l.Map = true
		case known:
			_, known = layoutOfRelease(release)
		}
		if !known {
			err = errNoForm
		}
	}
	if err == nil {
		return l, true, false, nil
	}
	if errors.Is(err, errForm) {
		return Layout{}, false, limited, fmt.Errorf("%w: %q: %w", ErrVersion, version, err)
	}
	if known {
		if l, ok := layoutOfRelease(release); ok {
			return l, false, limited, nil
		}
	}
	return Layout{}, false, limited, fmt.Errorf("%w: %q: %w", ErrVersion, version, err)
}

// cutShort reports whether an error ended the reading, and not what was read.
func cutShort(err error) bool {
	for _, of := range []error{nil, errNoDebugInfo, errNoTypes, errDamaged} {
		if errors.Is(err, of) {
			return false
		}
	}
	return true
}
