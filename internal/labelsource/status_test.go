//go:build linux

package labelsource

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// A label source has all that became known of it.
func TestSourceOfStatus(t *testing.T) {
	layout := record.GoLayout{GM: 6, GLabels: 7, MProcID: 8, MCurG: 9}
	status := Status{
		ABI:      record.ABIGo,
		Location: tlsresolve.Location{Kind: record.TLSDTVMusl, Offset: 1, Module: 2, Generation: 3},
		V8:       v8heap.Layout{Field: 4, MapType: 5},
		Go:       golabels.Plan{Layout: golabels.Layout{GoLayout: layout, Map: true}},
	}
	require.Equal(t, record.LabelSource{
		ABI: record.ABIGo, Kind: record.TLSDTVMusl, Offset: 1, Module: 2, Generation: 3,
		V8Field: 4, V8MapType: 5, Go: layout, GoMap: true,
	}, status.Source())
}

// What is not there yet is looked for again soon: slots, and a process through which a file can be opened.
func TestMayPass(t *testing.T) {
	require.True(t, mayPass(tlsresolve.ErrLazy))
	require.Equal(t, NotRelocated, stateOf(tlsresolve.ErrLazy))
	require.True(t, mayPass(fmt.Errorf("open: %w", executable.ErrNotOpened)))
	require.False(t, mayPass(tlsresolve.ErrNoRelocation))
}

// Of an error so much is kept as is told, and no part of a character.
func TestErrorText(t *testing.T) {
	require.Equal(t, "short", errorText(errors.New("short")))
	long := errorText(errors.New(strings.Repeat("é", maxErrorBytes)))
	require.Equal(t, strings.Repeat("é", maxErrorBytes/2)+"…", long)
	require.Equal(t, strings.Repeat("é", (maxErrorBytes-1)/2)+"…", errorText(errors.New("x" + strings.Repeat("é", maxErrorBytes)))[1:])
}

// A file is damaged as far as labels go when they cannot be found in it, or only by its release.
func TestDamaged(t *testing.T) {
	for _, c := range []struct {
		plan    executable.Plan
		damaged bool
	}{
		{executable.Plan{}, false},
		{executable.Plan{Err: golabels.ErrVersion}, false},
		{executable.Plan{Goroutines: golabels.Plan{Limited: true}}, true},
	} {
		f := executable.NewFile(procfs.FileID{}, "", executable.Facts{Plans: []executable.Plan{{}, c.plan}}, nil)
		require.Equal(t, c.damaged, Damaged(f), "%v", c.plan)
	}
}
