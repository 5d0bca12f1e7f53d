// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// TestKinds: a file of another kind is told by a sentence.
func TestKinds(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	p := pprof.New(pprof.MaxBytes)
	otlp.Walk(profiletest.Tenants().Profiles, p.Add)
	var unpacked bytes.Buffer
	require.NoError(t, p.Profile().WriteUncompressed(&unpacked))
	span := profiletest.In(append(profiletest.In(make([]byte, 16), 1), profiletest.In([]byte("GET /"), 5)...), 1, 2, 2)
	for name, tc := range map[string]struct {
		data []byte
		want error
	}{
		"program":        {program[:1<<16], input.ErrKind},
		"text":           {[]byte("a text\n"), input.ErrKind},
		"picture":        {[]byte("\x89PNG\r\n\x1a\n"), input.ErrKind},
		"perf.data":      {[]byte("PERFILE2\x68\x00\x00\x00"), input.ErrKind},
		"zeros":          {make([]byte, 100), nil},
		"unpacked pprof": {unpacked.Bytes(), input.ErrKind},
		"OTLP traces":    {span, input.ErrKind},
		"JSON traces":    {[]byte(`{"resourceSpans":[{"scopeSpans":[]}]}`), otlp.ErrOtherSignal},
		"JSON":           {[]byte(`{"a": 1}`), otlp.ErrOtherSignal},
		"gzipped text":   {profiletest.Packed([]byte("a text\n"), 10), pprof.ErrFormat},
		"gzipped OTLP":   {profiletest.Packed(formats(t)["single"], 1), pprof.ErrFormat},
		"mouse":          {[]byte("\n"), input.ErrKind},
	} {
		code, _, stderr := run("top", writeTemp(t, tc.data))
		require.Equal(t, command.ExitError, code, name)
		if tc.want != nil {
			require.Contains(t, stderr, tc.want.Error(), name)
		}
		require.NotContains(t, stderr, "wireType", name)
		require.NotContains(t, stderr, "proto:", name)
	}
}
