// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// consumer counts what it gets.
type consumer struct {
	batches int
	cuts    []error
	each    func()
}

func (c *consumer) Consume(pprofile.Profiles) {
	c.batches++
	c.each()
}

func (c *consumer) ConsumePprof(*profile.Profile) { c.Consume(pprofile.Profiles{}) }

func (c *consumer) Cut(err error) { c.cuts = append(c.cuts, err) }

// TestReadFilesStops: nothing more is decoded, or opened, once the context has ended, and the error
// is why.
func TestReadFilesStops(t *testing.T) {
	var frames bytes.Buffer
	_, err := otlp.AppendFrame(&frames, profiletest.Tenants().Profiles)
	require.NoError(t, err)
	line, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(profiletest.Tenants().Profiles)
	require.NoError(t, err)
	var pprofFile bytes.Buffer
	require.NoError(t, (&profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}).Write(&pprofFile))
	for name, data := range map[string][]byte{
		// What follows would be an error.
		"frames": append(frames.Bytes(), 0, 0, 0, 2, 0xff, 0xff),
		"lines":  append(line, "\n{]"...),
		"pprof":  pprofFile.Bytes(),
	} {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		ctx, cancel := context.WithCancelCause(t.Context())
		signal := errors.New("a signal")
		c := &consumer{each: func() { cancel(signal) }}
		require.Equal(t, signal, NewDecoder(64<<20).ReadFiles(ctx, []string{file, file + " that is missing"}, c), name)
		require.Equal(t, 1, c.batches, name)
	}
}

// TestLargeRequest: the error of a request that --max-memory would allow says so.
func TestLargeRequest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte{1, 0, 0, 0, 1}, 0o600))
	for memory, hint := range map[Memory]bool{1 << 20: true, 1 << 30: false} {
		c := &consumer{}
		err := NewDecoder(memory).ReadFiles(t.Context(), []string{file}, c)
		if hint {
			require.ErrorContains(t, err, "request 1: 16777216 bytes, more than 262144 (--max-memory allows more)")
		} else {
			require.NoError(t, err)
			require.Len(t, c.cuts, 1)
		}
	}
}
