// Package labelstates knows the states of testdata/bpf/target.c and what a
// reader of labels has to make of them: one list, the expectation of both readers,
// and a test compares their bytes.
package labelstates

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// State is one state of a label source.
type State struct {
	Name    string // the argument of the target
	ABI     string // as labels.ABI prints
	Outcome string // as labels.Outcome prints
	// Set is the label set as Show writes it, without its labels if there are
	// Many, "link" before them if there is one.
	Set  string
	Many int
	// GoMap tells that Go's labels are a map, GoRegister that the goroutine is in a
	// register and not in the variable.
	GoMap, GoRegister bool
}

// Names of attributes of thread contexts, by key index.
func Names() []string { return []string{"n0", "n1", "n2", "n3", "n4"} }

// All returns every state of every ABI.
func All() []State {
	const v0, v1, ctx = "custom_labels_v0", "custom_labels_v1", "thread_context"
	ten := numbered("k%d=v%d", 10)
	lengths, together := stringLengths()
	tagged := func(s State) State { // aarch64 ignores the upper byte of addresses
		if runtime.GOARCH != "arm64" {
			s.Outcome, s.Set = "fault", ""
		}
		return s
	}
	return append(append(nodeJS(), goLabels()...), []State{
		tagged(State{Name: "tagged", ABI: v0, Outcome: "present", Set: "k0=v0 k1=v1"}),
		tagged(State{Name: "tagged", ABI: v1, Outcome: "present", Set: "k0=v0 k1=v1"}),
		tagged(State{Name: "context-tagged", ABI: ctx, Outcome: "present", Set: "link"}),
		{Name: "null", ABI: v1, Outcome: "none"},
		{Name: "null", ABI: v0, Outcome: "none"},
		{Name: "null", ABI: ctx, Outcome: "none"},
		{Name: "zero", ABI: v0, Outcome: "none"},
		{Name: "zero", ABI: v1, Outcome: "none"},
		{Name: "count-0", ABI: v0, Outcome: "none"},
		{Name: "count-0", ABI: v1, Outcome: "none"},
		{Name: "labels-1", ABI: v0, Outcome: "present", Set: "k0=v0"},
		{Name: "labels-1", ABI: v1, Outcome: "present", Set: "k0=v0"},
		{Name: "labels-10", ABI: v0, Outcome: "present", Set: ten},
		{Name: "labels-10", ABI: v1, Outcome: "present", Set: ten},
		{Name: "labels-64", ABI: v1, Outcome: "present", Many: 64},
		{Name: "labels-65", ABI: v1, Outcome: "truncated", Many: 64},
		{Name: "holes", ABI: v1, Outcome: "present", Set: "k199=v199 k299=v299 k399=v399 k99=v99"},
		{Name: "holes-600", ABI: v1, Outcome: "truncated", Set: "k199=v199 k299=v299 k399=v399 k499=v499 k99=v99"},
		{Name: "only-holes", ABI: v0, Outcome: "none"},
		{Name: "slots-600", ABI: v1, Outcome: "truncated", Many: 64},
		{Name: "null-value", ABI: v1, Outcome: "present", Set: "k1=v1"},
		{Name: "empty", ABI: v1, Outcome: "present", Set: "="},
		{Name: "value-1024", ABI: v1, Outcome: "present", Set: "k=" + long("x", 1024)},
		{Name: "value-2000", ABI: v1, Outcome: "truncated", Set: "k=" + long("x", 1024)},
		{Name: "key-300", ABI: v0, Outcome: "truncated", Set: long("x", 256) + "=v"},
		{Name: "value-2-60", ABI: v1, Outcome: "truncated", Set: "k=" + long("x", 1024)},
		{Name: "section-full", ABI: v1, Outcome: "truncated", Set: "k=" + long("x", 1000)},
		{Name: "count-2-63", ABI: v1, Outcome: "fault"},
		{Name: "unmapped-set", ABI: v1, Outcome: "fault"},
		{Name: "kernel-set", ABI: v1, Outcome: "fault"},
		{Name: "unmapped-storage", ABI: v0, Outcome: "fault"},
		{Name: "null-storage", ABI: v1, Outcome: "invalid"},
		{Name: "unmapped-key", ABI: v1, Outcome: "fault"},
		{Name: "kernel-value", ABI: v1, Outcome: "fault"},
		{Name: "empty-kernel", ABI: v1, Outcome: "present", Set: "="},
		{Name: "fault-in-second", ABI: v1, Outcome: "fault"},
		{Name: "strings-together", ABI: v1, Outcome: "present", Set: ofLengths(together)},
		{Name: "strings-by-kind", ABI: v1, Outcome: "present", Set: ofLengths(lengths)},
		{Name: "strings-by-kind", ABI: v0, Outcome: "present", Set: ofLengths(lengths)},
		{Name: "strings-alone", ABI: v1, Outcome: "present", Set: ten},
		{Name: "strings-in-slots", ABI: v1, Outcome: "present", Set: "k=" + shorten(inSlots())},
		{Name: "strings-slots-behind", ABI: v1, Outcome: "present", Many: 40},
		{Name: "strings-at-end", ABI: v1, Outcome: "present", Set: ofLengths(lengths)},
		{Name: "strings-across", ABI: v1, Outcome: "present", Set: ofLengths(lengths)},
		{Name: "context", ABI: ctx, Outcome: "present", Set: "link"},
		{Name: "context-attrs-5", ABI: ctx, Outcome: "present", Set: "link " + numbered("n%d=a%d", 5)},
		{Name: "context-updating", ABI: ctx, Outcome: "updating"},
		{Name: "context-garbage", ABI: ctx, Outcome: "invalid"},
		{Name: "context-attrs-3000", ABI: ctx, Outcome: "truncated", Set: "link"},
		{Name: "context-across", ABI: ctx, Outcome: "present", Set: "link " + numbered("n%d=a%d", 3)},
		{Name: "context-attrs-long", ABI: ctx, Outcome: "present", Set: "link n0=" + shorten(numberedString(0, 150))},
		{Name: "context-past-end", ABI: ctx, Outcome: "fault"},
		{Name: "context-at-end", ABI: ctx, Outcome: "present", Set: "link n0="},
		{Name: "context-unmapped", ABI: ctx, Outcome: "fault"},
	}...)
}

func numbered(format string, n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(format, i, i))
	}
	return strings.Join(parts, " ")
}

// maxShown is the length up to which Show writes a key or value out.
const maxShown = 20

// Show appends a label to a set as State has it.
func Show(set, key, value string) string {
	if set != "" {
		set += " "
	}
	return set + shorten(key) + "=" + shorten(value)
}

// long is how Show writes a long string of one character.
func long(character string, n int) string { return shorten(strings.Repeat(character, n)) }

func shorten(s string) string {
	if len(s) > maxShown {
		return fmt.Sprintf("(%d %08x)", len(s), crc32.ChecksumIEEE([]byte(s)))
	}
	return s
}

// Target is a running target.
type Target struct {
	PID     int
	Offsets map[string]int64 // of the variables from the thread pointer, by ABI
}

// Build compiles testdata/bpf/target.c.
func Build(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "target")
	cmd := exec.Command("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-o", out, "../../testdata/bpf/target.c")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return out
}

// Start runs a target in a state until the end of the test, or for so many seconds
// (default: 60).
func Start(t testing.TB, path, state string, seconds ...string) Target {
	t.Helper()
	cmd := exec.Command(path, append([]string{state}, seconds...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	target := Target{Offsets: map[string]int64{}}
	var v0, v1, ctx, node, g int64
	var signed, descend uint64
	if _, err := fmt.Sscan(line, &target.PID, &v0, &v1, &ctx, &signed, &descend, &node, &g); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	target.Offsets = map[string]int64{"custom_labels_v0": v0, "custom_labels_v1": v1, "thread_context": ctx, NodeJS: node, Go: g}
	return target
}
