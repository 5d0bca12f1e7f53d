//go:build linux && (amd64 || arm64)

package writercheck

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

const (
	sources  = "../../testdata/check/"
	watching = 400 * time.Millisecond // at first
	attempts = 10
)

func TestMain(m *testing.M) { testutil.Main(m) }

// build is how a writer of testdata/check is made.
type build struct {
	abi     int
	library string   // "": the variable is in the executable
	late    bool     // the library is loaded by dlopen
	flags   []string // for the file with the variable
	exports []string // of the executable; nil: all
	apart   bool     // the executable, and not the library, refers to the variable
}

func traditional() string {
	if runtime.GOARCH == "arm64" {
		return "-mtls-dialect=trad"
	}
	return "-mtls-dialect=gnu"
}

func descriptor() string {
	if runtime.GOARCH == "arm64" {
		return "-mtls-dialect=desc"
	}
	return "-mtls-dialect=gnu2"
}

// writer builds a writer and returns its path.
func (b build) writer(t *testing.T) string {
	dir := t.TempDir()
	out := filepath.Join(dir, "writer")
	common := []string{"-O1", "-D_GNU_SOURCE", "-Wno-array-bounds", "-pthread", "-DABI=" + strconv.Itoa(b.abi)}
	args := append([]string{sources + "writer.c"}, common...)
	if b.abi == 2 {
		args = append(args, sources+"context.c")
	}
	if b.library == "" {
		args = append(append(args, sources+"variable.c"), b.flags...)
		if b.exports == nil {
			args = append(args, "-rdynamic")
		}
		for _, name := range b.exports {
			args = append(args, "-Wl,--export-dynamic-symbol="+name)
		}
		testutil.Compile(t, out, "gcc", append(args, "-ldl")...)
		return out
	}
	library := filepath.Join(dir, b.library)
	flags := append([]string{"-fPIC", "-shared", "-ftls-model=global-dynamic", sources + "variable.c"}, common...)
	if len(b.flags) == 0 || !strings.HasPrefix(b.flags[0], "-mtls") {
		flags = append(flags, descriptor())
	}
	testutil.Compile(t, library, "gcc", append(flags, b.flags...)...)
	switch {
	case b.late:
		args = append(args, `-DLIBRARY="`+library+`"`)
	default:
		if b.apart {
			args = append(args, sources+"elsewhere.c")
		}
		args = append(args, library, "-Wl,-rpath,"+dir)
	}
	testutil.Compile(t, out, "gcc", append(args, "-ldl")...)
	return out
}

// started runs a writer until it is ready.
func started(t *testing.T, path string, args ...string) int {
	t.Helper()
	cmd := exec.Command(path, args...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("ready %d\n", cmd.Process.Pid), line)
	return cmd.Process.Pid
}

// against returns the rules that a writer does not keep.
func against(t *testing.T, pid int, duration time.Duration) (ids []string, r *Report) {
	t.Helper()
	r, err := Watch(t.Context(), pid, duration)
	require.NoError(t, err)
	for i := range r.Results {
		if x := &r.Results[i]; x.Verdict == Broken || x.Verdict == Against {
			require.NotEmpty(t, x.Observed, x.ID)
			ids = append(ids, x.ID)
		}
	}
	return ids, r
}

// againstUntil watches a writer again, and longer each time, until enough was seen: a busy
// machine may have no time for the writer.
func againstUntil(t *testing.T, pid int, first time.Duration, enough func(ids []string, r *Report) bool) (ids []string, r *Report) {
	t.Helper()
	for attempt := 1; attempt <= attempts; attempt++ {
		ids, r = against(t, pid, time.Duration(attempt)*first)
		if enough(ids, r) {
			break
		}
	}
	return ids, r
}

// broken returns the rules that a writer breaks which breaks some.
func broken(t *testing.T, pid int) (ids []string, r *Report) {
	t.Helper()
	return againstUntil(t, pid, watching, func(ids []string, _ *Report) bool { return len(ids) > 0 })
}

// publishing returns the rules that a writer breaks which breaks none and publishes something.
func publishing(t *testing.T, pid int) (ids []string, r *Report) {
	t.Helper()
	return againstUntil(t, pid, watching, func(ids []string, r *Report) bool { return len(ids) > 0 || r.Reads.Published > 0 })
}

// running are writers that break one rule when they run.
type running struct {
	format Format
	build  build
	rules  []string
}

func runningWriters() []running {
	return []running{
		{V0, build{abi: 0}, []string{ruleStorage, ruleKeys, ruleValues, ruleValuesPresent, ruleSetAlignment, ruleUnique, ruleLimits}},
		{V1, build{abi: 1}, []string{ruleSet, ruleStorage, ruleKeys, ruleValues, ruleValuesPresent, ruleSetAlignment, ruleUnique, ruleLimits}},
		{ThreadContext, build{abi: 2}, []string{
			ruleRecord, ruleAlignment, ruleValid, ruleIDs, ruleFlags, ruleAttributes, ruleText, ruleRecordSize, ruleIndexes, ruleOneWay,
			ruleSchema, ruleSchemaName, "key-map", "key-map-append-only",
		}},
		{ProcessContext, build{abi: 2}, []string{
			"mapping-name", "single", "permissions", "dont-fork", "signature", "version", "timestamp", "clock", "payload-readable",
			"payload-size", "payload-decodes", "payload-fields", "update", "resource-keys", "service-name", "coordination",
		}},
	}
}

// Each of these writers breaks one rule when it runs, and no other.
func TestOneRuleBrokenWhenRunning(t *testing.T) {
	for _, of := range runningWriters() {
		writer := of.build.writer(t) // in a directory that lasts as long as the test
		for _, rule := range of.rules {
			t.Run(of.format.rule(rule), func(t *testing.T) {
				t.Parallel()
				ids, r := broken(t, started(t, writer, rule))
				require.Equal(t, []string{of.format.rule(rule)}, ids, "%+v", r.Reads)
			})
		}
	}
}

// builtWriter breaks one rule by how it was built.
type builtWriter struct {
	format Format
	rule   string
	build  build
}

func builtWriters() []builtWriter {
	const version, v0, v1 = versionSymbol, "custom_labels_thread_local_data", "custom_labels_current_set"
	const padded = "-DPAD=char pad[8];"
	return []builtWriter{
		{V0, ruleVersionExported, build{abi: 0, exports: []string{v0}}},
		{V0, ruleExported, build{abi: 0, exports: []string{version}}},
		{V0, ruleVersionSize, build{abi: 0, flags: []string{"-DVERSION_TYPE=uint64_t"}}},
		{V0, ruleVersionValue, build{abi: 0, flags: []string{"-DVERSION=1"}}},
		{V0, ruleThreadLocal, build{abi: 0, flags: []string{"-DNOT_THREAD_LOCAL"}}},
		{V0, ruleSize, build{abi: 0, flags: []string{padded}}},
		{V0, ruleFileName, build{abi: 0, library: "liblabels.so"}},
		{V0, ruleLoaded, build{abi: 0, library: "libcustomlabels.so", late: true}},
		{V0, ruleModel, build{abi: 0, library: "libcustomlabels.so", flags: []string{traditional()}}},
		{V1, ruleVersionExported, build{abi: 1, exports: []string{v1}}},
		{V1, ruleVersionSize, build{abi: 1, flags: []string{"-DVERSION_TYPE=uint64_t"}}},
		{V1, ruleVersionValue, build{abi: 1, flags: []string{"-DVERSION=7"}}},
		{V1, ruleExported, build{abi: 1, exports: []string{version}}},
		{V1, ruleThreadLocal, build{abi: 1, flags: []string{"-DNOT_THREAD_LOCAL"}}},
		{V1, ruleSize, build{abi: 1, flags: []string{padded}}},
		{V1, ruleFileName, build{abi: 1, library: "liblabels.so"}},
		{V1, ruleLoaded, build{abi: 1, library: "libcustomlabels.so", late: true}},
		{V1, ruleModel, build{abi: 1, library: "libcustomlabels.so", flags: []string{traditional()}}},
		{ThreadContext, ruleExported, build{abi: 2, exports: []string{version}}},
		{ThreadContext, ruleThreadLocal, build{abi: 2, flags: []string{"-DNOT_THREAD_LOCAL"}}},
		{ThreadContext, ruleSize, build{abi: 2, flags: []string{padded}}},
		{ThreadContext, ruleModel, build{abi: 2, library: "libctx.so", apart: true, flags: []string{"-DELSEWHERE"}}},
		{ThreadContext, ruleDescriptor, build{abi: 2, library: "libctx.so", flags: []string{traditional()}}},
	}
}

// Each of these breaks one by how it was built.
func TestOneRuleBrokenWhenBuilt(t *testing.T) {
	for _, of := range builtWriters() {
		t.Run(of.format.rule(of.rule), func(t *testing.T) {
			t.Parallel()
			ids, _ := broken(t, started(t, of.build.writer(t)))
			require.Equal(t, []string{of.format.rule(of.rule)}, ids)
		})
	}
}

// Writers that keep all rules, while they publish as fast as they can.
func TestNoRuleBroken(t *testing.T) {
	for _, of := range []struct {
		variant string
		format  Format
		args    []string
	}{
		{"v0-exe", V0, []string{"fidelity"}},
		{"v0-lib", V0, []string{"fidelity"}},
		{"v1-exe", V1, []string{"fidelity"}},
		{"v1-lib", V1, []string{"shares"}},
		{"ctx-exe", ThreadContext, []string{"fidelity", "--in-place"}},
		{"ctx-lib", ThreadContext, []string{"fidelity"}},
		{"ctx-dlopen", ThreadContext, []string{"shares"}},
	} {
		t.Run(of.variant, func(t *testing.T) {
			w := testutil.Start(t, "writer-"+of.variant, append(of.args, "--seconds", "60")...)
			ids, r := publishing(t, w.PID)
			require.Empty(t, ids)
			require.Equal(t, Holds, r.Verdict(), "%+v", r.Reads)
			require.Contains(t, r.Formats, of.format)
			require.Positive(t, r.Reads.Published)
			require.Zero(t, r.Reads.Invalid)
		})
	}
}

// A writer whose records are never complete breaks the rule about that.
func TestNeverComplete(t *testing.T) {
	valid := ThreadContext.rule(ruleValid)
	ids, r := againstUntil(t, started(t, build{abi: 2}.writer(t), "never-complete"), watching, func(ids []string, _ *Report) bool {
		return slices.Contains(ids, valid)
	})
	require.Contains(t, ids, valid)
	require.Zero(t, r.Reads.Published)
	require.Equal(t, r.Reads.Threads, r.Reads.Without)
	require.Contains(t, r.Why(), "valid was 0")
}

// A library's copy of a variable that is the program's is no writer.
func TestCopyIsNoWriter(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libother.so")
	common := []string{"-O1", "-D_GNU_SOURCE", "-DABI=1", sources + "variable.c"}
	testutil.Compile(t, library, "gcc", append([]string{"-fPIC", "-shared", "-ftls-model=global-dynamic"}, common...)...)
	writer := filepath.Join(dir, "writer")
	testutil.Compile(t, writer, "gcc", append([]string{"-pthread", "-rdynamic", sources + "writer.c", "-Wl,--no-as-needed", library, "-ldl"}, common...)...)
	ids, r := publishing(t, started(t, writer))
	require.Empty(t, ids)
	require.Equal(t, Holds, r.Verdict())
	require.Positive(t, r.Reads.Published)
}

// A writer with a clock of its own publishes times of that.
func TestClockOfAnotherNamespace(t *testing.T) {
	testutil.Need(t, testutil.TimeNamespaces)
	for _, offset := range []string{"86400", "-1"} {
		ids, r := publishing(t, started(t, "unshare", "--time", "--boottime", offset, build{abi: 2}.writer(t)))
		require.Empty(t, ids, offset)
		require.Equal(t, Holds, r.Verdict())
		require.Positive(t, r.Reads.Published)
	}
}

// A value is readable if its last byte is, too.
func TestLastByte(t *testing.T) {
	mem := &fakemem.Window{Start: 0x1000, Bytes: make([]byte, 64)}
	for length, ok := range map[uint64]bool{0: true, 4: true, 5: true, 56: true, 57: false, 1 << 62: false, 1<<64 - 1: false, 1<<64 - 4: false} {
		require.Equal(t, ok, readBytes(mem, make([]byte, min(length, 4)), 0x1008, length) == nil, "%d", length)
	}
}

// What publishes nothing is not judged.
func TestNothingPublished(t *testing.T) {
	w := testutil.Start(t, "spin-plain", "spin", "--seconds", "60")
	ids, r := against(t, w.PID, watching)
	require.Empty(t, ids)
	require.Empty(t, r.Results)
	require.Equal(t, NotSeen, r.Verdict())
	require.Contains(t, r.Why(), "nothing is published")
}

// What no program should publish neither crashes nor hangs the judge.
func TestHostileWriters(t *testing.T) {
	for _, variant := range []string{"v0-exe", "v1-exe", "ctx-exe"} {
		w := testutil.Start(t, "writer-"+variant, "hostile", "all", "--seconds", "60")
		_, r := againstUntil(t, w.PID, 2*time.Second, func(_ []string, r *Report) bool { return r.Verdict() == Broken })
		require.Equal(t, Broken, r.Verdict())
		require.Positive(t, r.Reads.Stops)
	}
}
