// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// asCommand makes the test binary the command, for tests that run it as another user.
const asCommand = "LABELPROF_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(command.ExitCode("inspect", Run(context.Background(), os.Args[2:], os.Stdout, os.Stderr), os.Stderr))
	}
	os.Exit(m.Run())
}

// inspected runs the command and returns its exit code and what it prints.
func inspected(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command.ExitCode("inspect", Run(t.Context(), args, &out, &errs), &errs)
	return code, out.String(), errs.String()
}

// golden compares a report with a file, but for what differs from run to run.
func golden(t *testing.T, name, got string, pid int, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		got = strings.ReplaceAll(got, dir, "DIR")
	}
	for _, r := range [][2]string{
		{`\b` + strconv.Itoa(pid) + `\b`, "PID"},
		{`(?m)^  \d+ `, "  TID "},
		{`0x[0-9a-f]+`, "ADDRESS"},
		{`thread pointer [-+] \d+`, "thread pointer ± N"},
		{`(module) \d+ (.*generation) \d+`, "$1 N $2 N"},
		{`(glibc) [0-9.]+`, "$1 VERSION"},
		{`/[^ ]*/libc.so.6: \d+`, "LIBC: N"},
		{`(\S)  +`, "$1  "}, // columns
	} {
		got = regexp.MustCompile(r[0]).ReplaceAllString(got, r[1])
	}
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestInspectWriters(t *testing.T) {
	dir := testutil.BuildWriters(t)
	for _, variant := range []string{
		"v0-exe", "v0-lib", "v0-dlopen", "v1-exe", "v1-lib", "v1-dlopen", "ctx-exe", "ctx-lib", "ctx-dlopen",
		"v1-dlopengd", "v1-dlopendesc",
	} {
		t.Run(variant, func(t *testing.T) {
			w := testutil.Start(t, "writer-"+variant, "spin", "--threads", "2", "--labels", "2", "--value-bytes", "5", "--seconds", "60", "--print-variables")
			pid := strconv.Itoa(w.PID)
			code, text, stderr := inspected(t, pid)
			require.Zero(t, code, stderr)
			golden(t, variant, text, w.PID, dir)

			code, text, _ = inspected(t, "--json", pid)
			require.Zero(t, code)
			r := parseReport(t, text)
			require.Equal(t, w.PID, r.PID)
			require.False(t, r.Changed)
			require.Len(t, r.Sources, 1)
			require.Equal(t, "active", r.Sources[0].State)
			require.Equal(t, filepath.Dir(r.Sources[0].File), dir)
			require.Len(t, r.Threads, 3, "two and the main thread")
			found := 0
			for _, v := range w.Variables {
				for _, thread := range r.Threads {
					if thread.TID == v.TID {
						require.Equal(t, fmt.Sprintf("%#x", v.Addr), thread.Readings[0].Variable, "where the writer has it")
						require.Equal(t, "present", thread.Readings[0].Outcome)
						require.Len(t, thread.Readings[0].Labels, 2)
						require.Positive(t, thread.StoodNs)
						found++
					}
				}
			}
			require.Equal(t, 2, found)
		})
	}
}

// parseReport reads the JSON for one process.
func parseReport(t *testing.T, text string) processReport {
	t.Helper()
	var out struct{ Processes []processReport }
	require.NoError(t, json.Unmarshal([]byte(text), &out), "%s", text)
	require.Len(t, out.Processes, 1)
	return out.Processes[0]
}

// UnmarshalJSON is for tests only.
func (l *labelText) UnmarshalJSON(data []byte) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for name, to := range map[string]*string{"key": &l.key, "value": &l.value} {
		var b []byte
		if raw, ok := fields[name+"_base64"]; ok {
			if err := json.Unmarshal(raw, &b); err != nil {
				return err
			}
			*to = string(b)
		} else if err := json.Unmarshal(fields[name], to); err != nil {
			return err
		}
	}
	return nil
}

// compiled builds a C program or library.
func compiled(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(out+".c", []byte("#include <stddef.h>\n#include <unistd.h>\n"+source), 0o644))
	msg, err := exec.Command("gcc", append([]string{"-O1", "-o", out, out + ".c"}, flags...)...).CombinedOutput()
	require.NoError(t, err, "%s", msg)
	return out
}

// started runs a program that writes a byte when it is ready.
func started(t *testing.T, path string) int {
	t.Helper()
	cmd := exec.Command(path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	return cmd.Process.Pid
}

const ready = `{ write(1, "x", 1); for (;;) pause(); }`

func TestInspectNoLabels(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	// Before that it is this program, or has not all of its libraries.
	require.Eventually(t, func() bool {
		call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid))
		return err == nil && strings.HasPrefix(string(call), fmt.Sprint(unix.SYS_CLOCK_NANOSLEEP, " "))
	}, time.Minute, time.Millisecond, "it does not sleep")
	code, text, _ := inspected(t, strconv.Itoa(cmd.Process.Pid))
	require.Equal(t, command.ExitNoLabels, code)
	golden(t, "sleep", text, cmd.Process.Pid, "/usr/bin")
}

// Each hint is for what was seen, and for nothing else.
func TestInspectHints(t *testing.T) {
	const variable = "__thread void *custom_labels_current_set; int custom_labels_abi_version = 1;\n"
	use := "int main(void) { custom_labels_current_set = &custom_labels_abi_version;" + ready + "}"
	second := filepath.Join(t.TempDir(), "second.c")
	require.NoError(t, os.WriteFile(second, []byte("static __thread void *custom_labels_current_set; void *other(void) { return &custom_labels_current_set; }"), 0o600))
	todo := map[string]string{
		"static stripped": "Keep .symtab", "not thread-local": "Declare custom_labels_current_set with __thread", "version only": "Export the variable by its plain name",
	}
	twofold := map[string]bool{"version only": true, "Node.js": true, "not thread-local": true} // have other hints, too
	for name, tc := range map[string]struct {
		source string
		flags  []string
		state  string // of a source
		hint   string // "": none of the notes
	}{
		"stripped":        {variable + use, []string{"-s"}, "", "link with -rdynamic"},
		"not stripped":    {variable + use, nil, "active", ""},
		"exported":        {variable + use, []string{"-s", "-rdynamic"}, "active", ""},
		"static stripped": {variable + use, []string{"-s", "-static"}, "", "static and stripped"},
		"other variable":  {"__thread int x; int main(void) { x = 1; " + ready + "}", nil, "", "defines none of the symbols, hidden ones included"},
		"not thread-local": {"void *custom_labels_current_set; int main(void)" + ready, []string{"-rdynamic"}, "",
			"but not as a thread-local variable"},
		"version only": {"__thread int x; int custom_labels_abi_version = 1; int main(void) { x = 1; " + ready + "}", []string{"-rdynamic", "-s"}, "",
			"defines custom_labels_abi_version, but exports no variable"},
		"version 7":        {strings.Replace(variable, "= 1", "= 7", 1) + use, []string{"-rdynamic"}, "unsupported_version", ""},
		"Node.js":          {"__thread void *otel_thread_ctx_nodejs_v1; int main(void)" + ready, []string{"-rdynamic"}, "unsupported_schema", ""},
		"no variables":     {"int main(void)" + ready, nil, "", "No file but the C library"},
		"hidden version 7": {"__attribute__((visibility(\"hidden\"))) " + strings.Replace(strings.Replace(variable, "= 1", "= 7", 1), "int custom", "__attribute__((visibility(\"hidden\"))) int custom", 1) + use, nil, "unsupported_version", ""},
		"two in one":       {"static " + strings.Replace(variable, "*custom", "*volatile custom", 1) + use, []string{second}, "unsupported_model", "several local thread-local variables"},
		"hidden":           {"__attribute__((visibility(\"hidden\"))) " + variable + use, nil, "active", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pid := started(t, compiled(t, "p", tc.source, tc.flags...))
			code, text, stderr := inspected(t, strconv.Itoa(pid))
			if tc.state == "active" {
				require.Zero(t, code, text+stderr)
				require.NotContains(t, text, "looked at")
				return
			}
			require.Equal(t, command.ExitNoLabels, code, text+stderr)
			require.Contains(t, text, tc.state)
			require.Contains(t, text, tc.hint)
			if tc.state != "" {
				require.NotContains(t, text, "defines none of the symbols")
			}
			if do, ok := todo[name]; ok { // and not what helps in general
				require.Contains(t, text, do)
				require.NotContains(t, text, "examples/publish")
			}
			for _, other := range []string{
				"link with -rdynamic", "static and stripped", "hidden ones included", "not as a thread-local", "exports no variable", "No file but",
			} {
				if !strings.Contains(tc.hint, other) && !strings.Contains(other, tc.hint) && !twofold[name] {
					require.NotContains(t, text, other)
				}
			}
		})
	}
}

// Labels can be any bytes, and are shown so that a terminal takes them for text.
func TestInspectHostileLabels(t *testing.T) {
	pid := started(t, compiled(t, "p", `
		struct string { size_t len; const char *buf; };
		struct label { struct string key, value; };
		static struct label labels[] = {
			{ { 8, "\033[31mred" }, { 7, "a\nb\rc\0\x07" } },
			{ { 2, "\xff\xfe" }, { 2, "\xc3\x28" } },
			{ { 6, "a\"b=c " }, { 0, "" } },
			{ { 4, "bidi" }, { 6, "\u202etxt" } },
			{ { 2, "c1" }, { 2, "\xc2\x9b" } },
			{ { 4, "null" }, { 4, NULL } },
			{ { 4, "bidi" }, { 5, "again" } },
		};
		static struct { struct label *storage; size_t count, capacity; } set = { labels, 7, 7 };
		__thread void *custom_labels_current_set;
		int main(void) { custom_labels_current_set = &set; `+ready+`}`, "-rdynamic"))
	code, text, stderr := inspected(t, strconv.Itoa(pid))
	require.Zero(t, code, stderr)
	for _, want := range []string{
		`\x1b[31mred=a\nb\rc\x00\a`, `\xff\xfe="\xc3("`, `"a\"b=c "=""`, `bidi=\u202etxt`, `c1=\u009b`,
		"1 × value NULL, left out; 1 × same key again, left out",
	} {
		require.Contains(t, text, want)
	}
	requirePrintable(t, text)

	code, text, stderr = inspected(t, "--json", strconv.Itoa(pid))
	require.Zero(t, code, stderr)
	requirePrintable(t, text)
	labels := parseReport(t, text).Threads[0].Readings[0].Labels
	require.Contains(t, labels, labelText{"\x1b[31mred", "a\nb\rc\x00\x07"})
	require.Contains(t, labels, labelText{"\xff\xfe", "\xc3("})
	require.Contains(t, labels, labelText{`a"b=c `, ""})
	require.Contains(t, labels, labelText{"bidi", "\u202etxt"})
}

func requirePrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		require.False(t, r != '\n' && (r < 0x20 || r == 0x7f || 0x80 <= r && r < 0xa0 || r == 0x202e || r == 0xfffd), "%q", r)
	}
}

// Several sources have a column of their own.
func TestInspectSeveralSources(t *testing.T) {
	pid := started(t, compiled(t, "p", `
		__thread void *custom_labels_current_set, *otel_thread_ctx_v1;
		__thread struct { void *storage; size_t count; } custom_labels_thread_local_data;
		static char record[28];
		int main(void) { record[24] = 1; otel_thread_ctx_v1 = record; `+ready+`}`, "-rdynamic"))
	code, text, stderr := inspected(t, strconv.Itoa(pid))
	require.Zero(t, code, stderr)
	require.Regexp(t, `TID +THREAD +SOURCE +VARIABLE +NOW`, text)
	require.Regexp(t, ` 1 +0x[0-9a-f]+ +no labels: the set is empty`, text)
	require.Regexp(t, ` 2 +0x[0-9a-f]+ +no labels: the pointer is NULL`, text)
	require.Regexp(t, ` 3 +0x[0-9a-f]+ +a record without ids and attributes`, text)
}

func TestInspectThreads(t *testing.T) {
	w := testutil.Start(t, "writer-v1-exe", "spin", "--threads", "10", "--seconds", "60")
	code, text, _ := inspected(t, "--threads", "3", "--json", strconv.Itoa(w.PID))
	require.Zero(t, code)
	r := parseReport(t, text)
	require.Len(t, r.Threads, 3)
	require.Equal(t, 8, r.ThreadsLeftOut)
	_, text, _ = inspected(t, "--threads", "3", strconv.Itoa(w.PID))
	require.Contains(t, text, "and 8 more threads")
	require.NotContains(t, text, "at this moment")
	w.Stop() // nothing keeps it from ending as it should
}

func TestInspectErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"none":      {nil, command.ExitUsage, "which PID?"},
		"no number": {[]string{"12x"}, command.ExitUsage, "12x is not a PID"},
		"zero":      {[]string{"0"}, command.ExitUsage, "not a PID"},
		"self":      {[]string{strconv.Itoa(os.Getpid())}, command.ExitUsage, "of this command"},
		"threads":   {[]string{"--threads", "-1", "1"}, command.ExitUsage, "--threads must be"},
		"nobody":    {[]string{"2147483647"}, command.ExitError, "no such process"},
		"JSON":      {[]string{"--json", "2147483647"}, command.ExitError, "1 of 1 processes"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := inspected(t, tc.args...)
			require.Equal(t, tc.code, code)
			require.Contains(t, stderr, tc.says)
			if name == "JSON" {
				require.Contains(t, parseReport(t, stdout).Error, "no such process")
			}
		})
	}
}

// failing is an output without room.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestReportCannotBeWritten: a report that is not written is an error, whatever is in it.
func TestReportCannotBeWritten(t *testing.T) {
	w := testutil.Start(t, "writer-v1-exe", "spin", "--seconds", "60")
	for _, args := range [][]string{
		{strconv.Itoa(w.PID)}, {"--json", strconv.Itoa(w.PID)}, {strconv.Itoa(w.PID), "2147483647"}, {strconv.Itoa(os.Getppid())},
	} {
		var stderr bytes.Buffer
		require.Equal(t, command.ExitError, command.ExitCode("inspect", Run(t.Context(), args, failing{}, &stderr), &stderr), "%q", args)
		require.Contains(t, stderr.String(), "labelprof inspect: no space left on device\n", "%q", args)
	}
}

// Another user without capabilities is told what is missing.
func TestInspectAsAnotherUser(t *testing.T) {
	testutil.RequireRoot(t)
	const nobody = 65534
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "labelprof")
	require.NoError(t, os.WriteFile(program, self, 0o755))
	for dir := filepath.Dir(program); dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	w := testutil.Start(t, "writer-v1-exe", "spin", "--seconds", "60")
	cmd := exec.Command(program, "inspect", strconv.Itoa(w.PID))
	cmd.Env = []string{asCommand + "=1"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, command.ExitError, exit.ExitCode())
	require.Regexp(t, `no permission to read the process: that takes its user or CAP_SYS_PTRACE`, string(out))
}
