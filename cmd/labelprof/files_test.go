// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// formats are the same two batches in every kind of file.
func formats(t *testing.T) map[string][]byte {
	t.Helper()
	single, err := pprofileotlp.NewExportRequestFromProfiles(tenants(t).profiles).MarshalProto()
	require.NoError(t, err)
	line, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(tenants(t).profiles)
	require.NoError(t, err)
	var frames bytes.Buffer
	for range 2 {
		_, err := appendFrame(&frames, tenants(t).profiles)
		require.NoError(t, err)
	}
	return map[string][]byte{
		"single": single,
		"frames": frames.Bytes(),
		"lines":  append(append(append([]byte{}, line...), "\n\n"...), line...),
	}
}

func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func writeTemp(t *testing.T, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

func TestTop(t *testing.T) {
	for name, want := range map[string]string{
		"single": "acme    3.00 s  60.0 %       60\n",
		"frames": "acme    6.00 s  60.0 %      120\n",
		"lines":  "acme    6.00 s  60.0 %      120\n",
	} {
		code, stdout, stderr := command("top", writeTemp(t, formats(t)[name]), "--by", "tenant")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, want, name)
		require.Contains(t, stdout, "parse_json", name)
	}
}

func TestTopSeveralFiles(t *testing.T) {
	f := formats(t)
	code, stdout, _ := command("top", writeTemp(t, f["single"]), writeTemp(t, f["lines"]), writeTemp(t, nil))
	require.Zero(t, code)
	require.Contains(t, stdout, "15.00 s in 300 samples")
}

func TestConvert(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.pb.gz")
	code, _, stderr := command("pprof", writeTemp(t, formats(t)["lines"]), "-o", out)
	require.Zero(t, code, stderr)
	file, err := os.Open(out)
	require.NoError(t, err)
	defer file.Close()
	p, err := profile.Parse(file)
	require.NoError(t, err)
	require.Len(t, p.Sample, 4)
	entries, err := os.ReadDir(filepath.Dir(out))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left over")
}

func TestBadFiles(t *testing.T) {
	f := formats(t)
	for name, data := range map[string][]byte{
		"cut frame":      f["frames"][:len(f["frames"])-3],
		"cut head":       append(append([]byte{}, f["frames"]...), 0, 0),
		"huge frame":     {9, 0, 0, 0, 1},
		"lying frame":    {7, 0xff, 0xff, 0xff, 1},
		"garbage frame":  {0, 0, 0, 2, 0xff, 0xff},
		"garbage":        []byte("garbage"),
		"cut single":     f["single"][:len(f["single"])-5],
		"cut line":       f["lines"][:100],
		"garbage behind": append(append([]byte{}, f["lines"]...), "\n{]"...),
	} {
		code, _, stderr := command("top", writeTemp(t, data))
		require.Equal(t, exitError, code, name)
		require.Contains(t, stderr, "labelprof top: read ", name)
	}
	code, _, stderr := command("top", filepath.Join(t.TempDir(), "missing"))
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "missing")
	code, _, stderr = command("top", writeTemp(t, nil))
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "no samples")
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"nothing"}, {"top"}, {"pprof", "x"}, {"pprof", "-o", "x"}, {"serve", "--max-memory", "0"}, {"top", "--by", "", "x"}, {"serve", "--interval", "0s"}, {"top", "--nothing"},
	} {
		code, _, stderr := command(args...)
		require.Equal(t, exitUsage, code, "%q", args)
		require.NotEmpty(t, stderr)
	}
	code, _, stderr := command("serve", "-h")
	require.Zero(t, code)
	require.Contains(t, stderr, "-listen")
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte{0, 0, 0, 2, 0x0a, 0})
	f.Add([]byte{0x0a, 0})
	request, err := pprofileotlp.NewExportRequestFromProfiles(tenants(f).profiles).MarshalProto()
	require.NoError(f, err)
	f.Add(request)
	for _, bomb := range requestBombs(50) {
		f.Add(bomb)
		f.Add(frame(bomb))
	}
	f.Add(nested(1000))
	f.Add([]byte(`{"resourceProfiles":[{},{},{"scopeProfiles":[{"profiles":[{"samples":[{},{},{}]}]}]}]}`))
	f.Add([]byte(`{"a":[[[[[[[[[[{{{{{{{{"`))
	file := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		s := &sink{table: newTable([]string{"tenant"}), pprof: newPprofProfile(maxPprofBytes)}
		_ = readFile(file, newDecoder(64<<20), s.consume)
		s.show(&bytes.Buffer{}, defaultView)
		if len(s.pprof.samples) > 0 {
			require.NoError(t, s.pprof.profile.CheckValid())
		}
	})
}
