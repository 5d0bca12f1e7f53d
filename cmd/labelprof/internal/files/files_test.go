// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// formats are the same two batches in every kind of file.
func formats(t *testing.T) map[string][]byte {
	t.Helper()
	single, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.Tenants().Profiles).MarshalProto()
	require.NoError(t, err)
	line, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(profiletest.Tenants().Profiles)
	require.NoError(t, err)
	var frames bytes.Buffer
	for range 2 {
		_, err := otlp.AppendFrame(&frames, profiletest.Tenants().Profiles)
		require.NoError(t, err)
	}
	return map[string][]byte{
		"single": single,
		"frames": frames.Bytes(),
		"lines":  append(append(append([]byte{}, line...), "\n\n"...), line...),
	}
}

// run runs a command and returns its exit code and what it prints.
func run(name string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{"top": Top, "pprof": Convert}
	code = command.ExitCode(name, commands[name](context.Background(), args, &out, &errs), &errs)
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
		code, stdout, stderr := run("top", writeTemp(t, formats(t)[name]), "--by", "tenant")
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, want, name)
		require.Contains(t, stdout, "parse_json", name)
	}
}

func TestTopSeveralFiles(t *testing.T) {
	f := formats(t)
	code, stdout, _ := run("top", writeTemp(t, f["single"]), writeTemp(t, f["lines"]), writeTemp(t, nil))
	require.Zero(t, code)
	require.Contains(t, stdout, "15.00 s in 300 samples")
}

func TestConvert(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.pb.gz")
	code, _, stderr := run("pprof", writeTemp(t, formats(t)["lines"]), "-o", out)
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

	// What is said of the file is said of the pprof file, processes included.
	_, before, _ := run("top", writeTemp(t, formats(t)["lines"]))
	_, after, _ := run("top", out)
	first, _, _ := strings.Cut(before, "\n")
	require.Contains(t, first, "10.00 s in 200 samples of 2 processes")
	require.Contains(t, after, "10.00 s in 200 samples of 2 processes")
}

// TestConvertWithoutRoom: a profile that lacks samples is no success, and says how to have all.
func TestConvertWithoutRoom(t *testing.T) {
	var frames bytes.Buffer
	for i := range 20 {
		_, err := otlp.AppendFrame(&frames, profiletest.Distinct(100*i, 100).Profiles)
		require.NoError(t, err)
	}
	file, out := writeTemp(t, frames.Bytes()), filepath.Join(t.TempDir(), "out.pb.gz")
	code, _, stderr := run("pprof", "--max-memory", "1", "-o", out, file)
	require.Equal(t, command.ExitError, code)
	require.Regexp(t, `^\d+ samples not in the pprof file: no room \(--max-memory allows more\)\n$`, stderr)
	require.FileExists(t, out)
	code, _, stderr = run("pprof", "--max-memory", "16", "-o", out, file)
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
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
		code, _, stderr := run("top", writeTemp(t, data))
		require.Equal(t, command.ExitError, code, name)
		require.Contains(t, stderr, "labelprof top: read ", name)
		cut := name == "cut frame" || name == "cut head" || name == "lying frame" || name == "cut line"
		require.Equal(t, cut, strings.Contains(stderr, "it is cut, or still being written"), stderr)
	}
	code, _, stderr := run("top", filepath.Join(t.TempDir(), "missing"))
	require.Equal(t, command.ExitError, code)
	require.Contains(t, stderr, "missing")
	code, _, stderr = run("top", writeTemp(t, nil))
	require.Equal(t, command.ExitError, code)
	require.Contains(t, stderr, "no samples")
}

// TestCutFiles: what is before a cut is shown and converted, that there is one is said, and it is no
// success.
func TestCutFiles(t *testing.T) {
	frames := formats(t)["frames"]
	file, out := writeTemp(t, frames[:len(frames)-3]), filepath.Join(t.TempDir(), "out.pb.gz")
	cut := fmt.Sprintf("read %s: the file ends within request 2, which is left out (%d of %d bytes are there): it is cut, or still being written",
		file, len(frames)/2-4-3, len(frames)/2-4)
	code, stdout, stderr := run("top", file)
	require.Equal(t, command.ExitError, code)
	require.Equal(t, "labelprof top: "+cut+"\n", stderr)
	require.Contains(t, stdout, "5.00 s in 100 samples of 2 processes")
	require.Contains(t, stdout, "\n! "+cut+"\n")
	code, stdout, _ = run("top", "--json", file)
	require.Equal(t, command.ExitError, code)
	var document struct{ Notes []string }
	require.NoError(t, json.Unmarshal([]byte(stdout), &document))
	require.Equal(t, []string{cut}, document.Notes)

	code, _, stderr = run("pprof", "-o", out, file)
	require.Equal(t, command.ExitError, code)
	require.Equal(t, "labelprof pprof: "+cut+"\n", stderr)
	_, stdout, _ = run("top", out)
	require.Contains(t, stdout, "5.00 s in 100 samples of 2 processes")

	// Several are told, beside what else is wrong.
	code, _, stderr = run("top", file, file, filepath.Join(t.TempDir(), "missing"))
	require.Equal(t, command.ExitError, code)
	require.Equal(t, 2, strings.Count(stderr, cut+"\n"), stderr)
	require.Contains(t, stderr, "missing: no such file")
	nothing := writeTemp(t, frames[:100])
	for _, args := range [][]string{{"top", nothing}, {"pprof", "-o", out + ".none", nothing}} {
		code, _, stderr = run(args[0], args[1:]...)
		require.Equal(t, command.ExitError, code)
		require.Regexp(t, `^labelprof \w+: read .* within request 1, .*\nno samples\n$`, stderr)
	}
	require.NoFileExists(t, out+".none")
}

func TestBadPprofFiles(t *testing.T) {
	heap := &profile.Profile{SampleType: []*profile.ValueType{{Type: "space", Unit: "bytes"}}}
	var packed bytes.Buffer
	require.NoError(t, heap.Write(&packed))
	name := writeTemp(t, packed.Bytes())
	code, _, stderr := run("top", name)
	require.Equal(t, command.ExitError, code)
	require.Contains(t, stderr, "neither CPU time nor off-CPU time")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, bad := range [][]byte{data[:len(data)-9], {0x1f, 0x8b, 1, 2, 3}} {
		code, _, stderr = run("top", writeTemp(t, bad))
		require.Equal(t, command.ExitError, code)
		require.Contains(t, stderr, "labelprof top: read ")
	}
}

// TestInterrupted: a signal ends the reading with its name, and nothing is printed or written.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received")) // as signal.NotifyContext says it
	file, out := writeTemp(t, formats(t)["frames"]), filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	require.Equal(t, command.ExitError, command.ExitCode("top", Top(ctx, []string{file}, &stdout, &stderr), &stderr))
	require.Equal(t, command.ExitError, command.ExitCode("pprof", Convert(ctx, []string{"-o", out, file}, &stdout, &stderr), &stderr))
	require.Empty(t, stdout.String())
	require.Equal(t, "labelprof top: interrupt signal received\nlabelprof pprof: interrupt signal received\n", stderr.String())
	require.NoFileExists(t, out)
}
