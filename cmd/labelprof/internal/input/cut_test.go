// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// TestCut: of a file that ends within a request all before is handed over, what is left out is
// told, and the next file is read.
func TestCut(t *testing.T) {
	var frame bytes.Buffer
	_, err := otlp.AppendFrame(&frame, profiletest.Tenants().Profiles)
	require.NoError(t, err)
	line, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(profiletest.Tenants().Profiles)
	require.NoError(t, err)
	frames := func(more ...byte) []byte { return append(bytes.Repeat(frame.Bytes(), 2), more...) }
	lines := func(more string) []byte { return append(append(bytes.Repeat(append(line, '\n'), 2), '\n'), more...) }
	for name, tc := range map[string]struct {
		data    []byte
		batches int
		want    string // of what is told; "": nothing
	}{
		"whole frames":     {frames(), 2, ""},
		"cut in the head":  {frames(0, 0), 2, "the file ends within request 3, which is left out (2 bytes are there): it is cut, or still being written"},
		"cut behind it":    {frames(0, 0, 1, 4), 2, "the file ends within request 3, which is left out (0 of 260 bytes are there): it is cut, or still being written"},
		"cut request":      {frames(0, 0, 1, 4, 10), 2, "the file ends within request 3, which is left out (1 of 260 bytes are there): it is cut, or still being written"},
		"cut at the first": {[]byte{0, 0, 1, 4, 10}, 0, "the file ends within request 1, which is left out (1 of 260 bytes are there): it is cut, or still being written"},
		"whole lines":      {lines(""), 2, ""},
		"without its end":  {lines(string(line)), 3, ""},
		"cut line":         {lines(string(line[:100])), 2, "the file ends within line 4, which is left out (100 bytes are there): it is cut, or still being written"},
	} {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, tc.data, 0o600))
		next := filepath.Join(t.TempDir(), "next")
		require.NoError(t, os.WriteFile(next, frame.Bytes(), 0o600))
		c := &consumer{each: func() {}}
		require.NoError(t, NewDecoder(64<<20).ReadFiles(t.Context(), []string{file, next}, c), name)
		require.Equal(t, tc.batches+1, c.batches, name)
		if tc.want == "" {
			require.Empty(t, c.cuts, name)
			continue
		}
		require.Len(t, c.cuts, 1, name)
		require.EqualError(t, c.cuts[0], "read "+file+": "+tc.want, name)
	}
}

// TestNotCut: what is no beginning of a request, or of one that is too large, is an error.
func TestNotCut(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"garbage":           {"{}\n{]", "line 2: "},
		"a line that ends":  {"{}\n{\"resourceProfiles\":[\n", "line 2: "},
		"too large anyway":  {"{}\n{\"resourceProfiles\":[" + string(bytes.Repeat([]byte("{},"), 50_000)), "line 2: "},
		"another signal":    {"{}\n{\"resourceSpans\":[]}", "line 2: "},
		"garbage in frames": {"\x00\x00\x00\x00\x00\x00\x00\x02\xff\xff", "request 2: "},
	} {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, []byte(tc.data), 0o600))
		c := &consumer{each: func() {}}
		require.ErrorContains(t, NewDecoder(1<<20).ReadFiles(t.Context(), []string{file}, c), tc.want, name)
		require.Equal(t, 1, c.batches, name)
		require.Empty(t, c.cuts, name)
	}
}
