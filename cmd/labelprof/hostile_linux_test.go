// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// dataKiB is what the command may have of private memory in these tests: the base, the
// page's samples and what is decoded, and what the runtime takes ahead.
const dataKiB = (command.BaseBytes>>20 + 2*64 + 192) << 10

// TestHostileFiles: what a small file stands for is refused before it takes the memory.
func TestHostileFiles(t *testing.T) {
	const room, decoded = "it has more than 16 MiB", "decoded it would take more than 32 MiB (--max-memory allows more)"
	samples := profiletest.Empty(1<<20, 2) // of pprof: 2 MiB
	requests := profiletest.Empty(7<<20, 1)
	line := `{"resourceProfiles":[{}` + strings.Repeat(",{}", 4<<20) + `]}`
	program := profiletest.Program(t, dataKiB)
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"pprof of 120 Mi samples":  {profiletest.Packed(samples, 120), room},
		"pprof of 7 Mi samples":    {profiletest.Packed(samples, 7), decoded},
		"request of 14 MiB":        {requests, decoded},
		"frame of 14 MiB":          {profiletest.Frame(requests), decoded},
		"line of 12 MiB":           {[]byte(line), decoded},
		"request of lists in list": {profiletest.Nested(15 << 20), weight.ErrNested.Error()},
		"line of lists in lists":   {[]byte(`{"a":` + strings.Repeat("[", 1<<20)), weight.ErrNested.Error()},
		"long line":                {[]byte("{" + strings.Repeat(" ", 17<<20)), "a line has more than 16 MiB"},
		"long request":             {bytes.Repeat([]byte{0x0a}, 17<<20), room},
	} {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, tc.data, 0o600))
		commands := [][]string{{"top", file}}
		if bytes.Equal(tc.data, requests) { // they read alike
			commands = append(commands, []string{"pprof", "-o", filepath.Join(t.TempDir(), "out"), file}, []string{"serve", "--web", "127.0.0.1:0", file})
		}
		for _, args := range commands {
			args = append(args, "--max-memory", "64")
			cmd := exec.Command(program.Path, append(program.Args[1:len(program.Args):len(program.Args)], args...)...)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "%s %s", args[0], name)
			require.Equal(t, command.ExitError, cmd.ProcessState.ExitCode(), "%s %s: %.2000s", args[0], name, out)
			require.Contains(t, string(out), tc.want, "%s %s", args[0], name)
			lines := 1
			if args[0] == "serve" {
				lines++ // where its page is
			}
			require.Equal(t, lines, bytes.Count(out, []byte("\n")), "one sentence: %s", out)
		}
	}
}
