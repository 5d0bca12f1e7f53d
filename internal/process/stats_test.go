//go:build linux

package process

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Processes with label sources are counted for as long as the sampling programs know them.
func TestLabelledAreCounted(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	p := f.Lookup(image1, 42, nobody, []byte("one"))
	require.Zero(t, f.Stats().Labelled, "it has none")
	some := make([]record.LabelSource, 1)
	told := func(what publication, sources []record.LabelSource) int {
		f.publish(p, what, sources)
		return f.Stats().Labelled
	}
	require.Equal(t, 1, told(publishedSources, some))
	require.Equal(t, 1, told(unpublished, nil), "no news")
	require.Zero(t, told(publishedSources, nil))
	require.Equal(t, 1, told(publishedSources, some))
	require.Zero(t, told(publishedFilter, some))
	require.Equal(t, 1, told(publishedSources, some))
	f.published.err = errors.New("no room")
	require.Zero(t, told(publishedSources, some))
	f.published.err = nil
	require.Equal(t, 1, told(publishedSources, some))
	f.HandleEvent(record.Event{Kind: record.EventExit, Process: image1, TimeNs: uint64(f.now())})
	require.Zero(t, f.Stats().Labelled)
}
