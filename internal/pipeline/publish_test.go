//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// forgetter remembers which processes it was to forget.
type forgetter struct {
	programs
	forgot []record.ProcessID
}

func (f *forgetter) SetLabelSources(record.ProcessID, []record.LabelSource) error { return nil }
func (f *forgetter) Filter(record.ProcessID) error                                { return nil }

func (f *forgetter) Forget(id record.ProcessID) error {
	f.forgot = append(f.forgot, id)
	return nil
}

// What was entered of a process that has ended is removed, once; of most there is nothing to remove.
func TestPublisherForgets(t *testing.T) {
	f := &forgetter{}
	p := publishTo(f)
	plain, labelled, filtered := record.ProcessID{TGID: 1}, record.ProcessID{TGID: 2}, record.ProcessID{TGID: 3}
	require.NoError(t, p.SetLabelSources(plain, nil))
	require.Equal(t, []record.ProcessID{plain}, f.forgot, "what it may have begun with")
	f.forgot = nil
	require.NoError(t, p.SetLabelSources(labelled, make([]record.LabelSource, 1)))
	require.NoError(t, p.Filter(filtered))
	require.Equal(t, 1, p.labelled())
	for range 2 {
		for _, id := range []record.ProcessID{plain, labelled, filtered} {
			require.NoError(t, p.Forget(id))
		}
	}
	require.Equal(t, []record.ProcessID{labelled, filtered}, f.forgot)
	require.Zero(t, p.labelled())
}
