//go:build linux

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What comes of a look, by what was known before and what was read.
func TestDecide(t *testing.T) {
	active := []labelsource.Status{{State: labelsource.Active}}
	sources := []record.LabelSource{{ABI: record.ABIV1}}
	labelled := &Selection{LabelledOnly: true}
	known := remembered{extent: extentWhole, info: &Info{Name: "p", Sources: active}}
	for name, tc := range map[string]struct {
		look look
		at   situation
		want decision

		verdict Verdict
		extent  extent
	}{
		"the first look": {
			look: look{full: true, wanted: true, sources: sources, info: Info{Sources: active}},
			want: decision{tell: publishedSources, settled: true, show: true}, extent: extentWhole,
		},
		"no news": {
			look: look{wanted: true, sources: sources, info: *known.info, read: known},
			at:   situation{publication: publishedSources, sources: sources},
			want: decision{settled: true}, extent: extentWhole,
		},
		"another mapping": {
			look: look{wanted: true, changed: true, sources: sources, info: *known.info, read: known},
			at:   situation{publication: publishedSources, sources: sources},
			want: decision{settled: true, show: true}, extent: extentWhole,
		},
		"another context": {
			look: look{wanted: true, newContext: true, sources: sources, info: *known.info, read: known},
			at:   situation{publication: publishedSources, sources: sources},
			want: decision{settled: true, show: true}, extent: extentWhole,
		},
		"another user": {
			look: look{wanted: true, sources: sources, info: Info{Name: "p", UID: 7, Sources: active}, read: known},
			at:   situation{publication: publishedSources, sources: sources},
			want: decision{settled: true, show: true}, extent: extentWhole,
		},
		"sources have gone": {
			look: look{wanted: true, info: Info{Name: "p"}, read: known},
			at:   situation{publication: publishedSources, sources: sources},
			want: decision{tell: publishedSources, settled: true, show: true}, extent: extentWhole,
		},
		"a library is being loaded": {
			look: look{full: true, wanted: true, loading: true},
			want: decision{tell: publishedSources, show: true, retry: true}, extent: extentWhole,
		},
		"a library is being loaded for too long": {
			look: look{full: true, wanted: true, loading: true, read: remembered{attempt: len(retryDelays)}},
			want: decision{tell: publishedSources, settled: true, show: true, retry: true}, extent: extentWhole,
		},
		"a context is being written": {
			look: look{full: true, wanted: true, updating: true},
			want: decision{tell: publishedSources, show: true, retry: true}, extent: extentWhole,
		},
		"a child keeps what it has inherited": {
			look: look{full: true, wanted: true, loading: true},
			at:   situation{inherited: 1},
			want: decision{show: true, retry: true}, extent: extentWhole,
		},
		"so does who has just begun": {
			look: look{full: true, wanted: true},
			at:   situation{inherited: 1, young: true},
			want: decision{settled: true, show: true}, extent: extentWhole,
		},
		"what was told of it is its own": {
			look: look{full: true, wanted: true, loading: true},
			at:   situation{inherited: 1, publication: publishedSources, sources: sources},
			want: decision{tell: publishedSources, show: true, retry: true}, extent: extentWhole,
		},
		"no labels, which are asked for": {
			look: look{full: true, wanted: true},
			at:   situation{selection: labelled},
			want: decision{tell: publishedFilter, show: true}, verdict: VerdictFiltered, extent: extentWhole,
		},
		"no labels yet": {
			look: look{full: true, wanted: true, loading: true},
			at:   situation{selection: labelled, shown: VerdictWanted},
			want: decision{tell: publishedSources, show: true, retry: true}, verdict: VerdictWanted, extent: extentWhole,
		},
		"filtered already": {
			look:    look{wanted: true, info: Info{Verdict: VerdictFiltered}, read: remembered{info: &Info{Verdict: VerdictFiltered}}},
			at:      situation{selection: labelled, publication: publishedFilter},
			verdict: VerdictFiltered, extent: extentWhole,
		},
		"not wanted": {
			look: look{full: true, info: Info{Mappings: make([]executable.Mapping, 3)}},
			at:   situation{selection: &Selection{}},
			want: decision{tell: publishedFilter, show: true}, verdict: VerdictFiltered, extent: extentOwner,
		},
		"not wanted any more": {
			look: look{info: *known.info, read: known},
			at:   situation{selection: &Selection{}, publication: publishedSources, sources: sources},
			want: decision{tell: publishedFilter, show: true}, verdict: VerdictFiltered, extent: extentOwner,
		},
		"still not wanted": {
			look:    look{info: Info{Name: "p"}, read: remembered{extent: extentOwner, info: known.info}},
			at:      situation{selection: &Selection{}, publication: publishedFilter},
			verdict: VerdictFiltered, extent: extentOwner,
		},
		"a thread of the kernel": {
			look: look{kernel: true, wanted: true},
			want: decision{show: true}, extent: extentWhole,
		},
		"one that is wanted": {
			look: look{kernel: true, wanted: true},
			at:   situation{selection: &Selection{}},
			want: decision{tell: publishedSources, show: true}, verdict: VerdictWanted, extent: extentWhole,
		},
		"one that is not": {
			look: look{kernel: true},
			at:   situation{selection: &Selection{}},
			want: decision{tell: publishedFilter, show: true}, verdict: VerdictFiltered, extent: extentWhole,
		},
		"memory is short": {
			look: look{full: true, wanted: true, info: Info{Mappings: make([]executable.Mapping, 3)}},
			at:   situation{memoryShort: true},
			want: decision{tell: publishedSources, settled: true, show: true}, extent: extentReduced,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := tc.look
			require.Equal(t, tc.want, decide(&l, &tc.at))
			require.Equal(t, tc.verdict, l.info.Verdict)
			require.Equal(t, tc.extent, l.read.extent)
			if tc.extent != extentWhole {
				require.Empty(t, l.info.Mappings)
			}
			if tc.extent == extentOwner {
				require.Empty(t, l.info.Sources)
			}
		})
	}
}
