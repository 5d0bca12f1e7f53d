//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	contextRate = 97
	// contextGoal is how long after its publication a name is to be seen.
	contextGoal = 100 * time.Millisecond
	// childSlack is how far the log of a forked child may be from what it tells of.
	childSlack = 100 * time.Millisecond
	// childExec is how long after it has said so the child may still not run the other program, on a busy machine.
	childExec = 2500 * time.Millisecond
	// childSeen is how soon a sample is of the other program.
	childSeen = time.Second
	// contextLeft is how long before its end a program may publish a name that is
	// not found any more: samples come in bursts, and its memory goes with it.
	contextLeft = 300 * time.Millisecond
)

// contextHit is a sample and the resource that it came under.
type contextHit struct {
	hit
	batch uint64 // start of it
}

// TestContexts: every sample of a program has the resource, the link, the flags and the
// attributes that the program had published then. Programs whose process context comes
// after a while, grows again and again, and each new name is used at once, by every
// access model; a child that inherits a thread's record and no context, publishes its
// own, and runs another program; and the libraries for Go and Node.js from the registries.
func TestContexts(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.Measure(t, measureContexts)
}

func measureContexts(t *testing.T, bounds *testutil.Bounds) {
	others := othersCPU(t)
	rows := updatedRows(t, bounds)
	rows = append(rows, goContextRow(t, bounds))
	rows = append(rows, nodeContextRows(t, bounds)...)
	testutil.ReportLabelAssertions(t.Name(), requireContextTable(t, bounds, rows, others()))
}

// gather samples at the usual rate while f runs.
func gather(t *testing.T, change func(*customlabelsreceiver.Config), f func()) (hits []contextHit) {
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			hits = append(hits, contextHit{b.hits[i], b.start})
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = contextRate
		c.ReportInterval = 500 * time.Millisecond
		change(c)
	})
	f()
	r.stop()
	slices.SortFunc(hits, func(a, b contextHit) int { return int(int64(a.timeUnixNano) - int64(b.timeUnixNano)) })
	return hits
}

// of returns those of a process.
func of(hits []contextHit, pid int64) []contextHit {
	return slices.DeleteFunc(slices.Clone(hits), func(h contextHit) bool { return h.pid != pid })
}

// updatedRows runs the programs whose process context comes late and grows.
func updatedRows(t *testing.T, bounds *testutil.Bounds) (rows []*contextRow) {
	testutil.BuildWriters(t)
	seconds := size(20, 8, 8)
	variants := []string{"writer-ctx-exe", "writer-ctx-lib", "writer-ctx-dlopen", "writer-ctx-dlopengd", "writer-ctx-exe --in-place"}
	var writers []*testutil.Writer
	var logs []string
	hits := gather(t, func(c *customlabelsreceiver.Config) { c.Symbolize = customlabelsreceiver.SymbolizeNone }, func() {
		for _, variant := range variants {
			words := strings.Fields(variant)
			log := filepath.Join(t.TempDir(), "log")
			args := append([]string{"updates", "--fork", "--log", log, "--dwell-us", "300000", "--service", "shop", "--seconds", fmt.Sprint(seconds)}, words[1:]...)
			writers, logs = append(writers, testutil.Start(t, words[0], args...)), append(logs, log)
		}
		for _, w := range writers {
			w.Wait(time.Duration(seconds)*time.Second + time.Minute)
		}
	})
	toUnix := monoToUnix(t)
	for i, variant := range variants {
		row := &contextRow{writer: strings.Replace(strings.TrimPrefix(variant, "writer-ctx-"), " --", ", ", 1)}
		log := readContextLog(t, logs[i], toUnix)
		row.checkUpdates(t, bounds, of(hits, int64(writers[i].PID)), log)
		row.checkChild(t, bounds, of(hits, log.child), log)
		rows = append(rows, row)
	}
	return rows
}

// contextLog is what a program says that it did, in Unix ns.
type contextLog struct {
	updates          []uint64
	child            int64
	forked, own, ran uint64
}

func readContextLog(t *testing.T, path string, toUnix uint64) (log contextLog) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var what string
		var n int64
		var at uint64
		_, err := fmt.Sscan(lines.Text(), &what, &n, &at)
		require.NoError(t, err, lines.Text())
		at += toUnix
		switch what {
		case "update":
			require.Len(t, log.updates, int(n))
			log.updates = append(log.updates, at)
		case "child":
			log.child, log.forked = n, at
		case "own":
			log.own = at
		case "exec":
			log.ran = at
		}
	}
	require.NoError(t, lines.Err())
	require.Greater(t, len(log.updates), 5)
	return log
}

// checkUpdates holds each sample against the record that was current. The log
// names the time right after the publication, so a sample may be one ahead.
func (row *contextRow) checkUpdates(t *testing.T, bounds *testutil.Bounds, hits []contextHit, log contextLog) {
	require.NotEmpty(bounds, hits, row.writer)
	end := hits[len(hits)-1].timeUnixNano - uint64(contextLeft)
	lacking := make([]int, len(log.updates)+1) // samples from after so many updates
	first, labelled := make([]time.Duration, len(log.updates)), make([]time.Duration, len(log.updates))
	for i := range hits {
		h := &hits[i]
		if h.timeUnixNano > end {
			break
		}
		before, _ := slices.BinarySearch(log.updates, h.timeUnixNano)
		keys, err := countKeys(h)
		good := err == nil && (keys == before || keys == before+1)
		// Of the current record, but without all of its names; or from before it was found.
		late := err == nil && keys < before &&
			(h.link == updatedLink(before) || h.link == updatedLink(before+1) || h.link == link{} && keys == 0)
		if late {
			row.late++
		} else {
			if !good && before > 0 {
				lacking[before-1]++
			}
			row.check(t, ofAttributes, good, "%d names, not %d: %v (%v)", keys, before, h.attrs, err)
		}
		for n := range before {
			if first[n] == 0 {
				first[n] = max(1, time.Duration(h.timeUnixNano-log.updates[n]))
			}
		}
		if keys == 0 || late {
			continue
		}
		for n := range min(keys, len(log.updates)) {
			if labelled[n] == 0 {
				labelled[n] = max(1, time.Duration(int64(h.timeUnixNano-log.updates[n])))
			}
		}
		row.check(t, ofResource, h.resource["service.name"] == "shop", "%v", h.resource)
		row.check(t, ofLink, h.link == updatedLink(keys), "%v with %d names", h.link, keys)
		row.check(t, ofFlags, h.attrs["trace_sampled"] == fmt.Sprint(keys%2 == 1), "%q with %d names", h.attrs["trace_sampled"], keys)
	}
	for n := range log.updates {
		if first[n] == 0 || labelled[n] == 0 {
			continue // at the end
		}
		row.check(t, ofUpdate, lacking[n] == 0, "%d samples without the name %d", lacking[n], n)
		row.delays, row.waits = append(row.delays, labelled[n]), append(row.waits, first[n])
	}
	require.Greater(bounds, len(row.delays), 5, row.writer)
}

// updatedLink is the link of a record with so many names.
func updatedLink(keys int) link {
	return link{traceID: [16]byte{0x75, 1}, spanID: [8]byte{0x75, 2, 7: byte(keys)}}
}

// countKeys returns how many of key_0, key_1 ... there are; each has its number
// as its value, and there are no gaps.
func countKeys(h *contextHit) (n int, err error) {
	for key := range h.attrs {
		if strings.HasPrefix(key, "key_") {
			n++
		}
	}
	for i := range n {
		if value, ok := h.attrs[fmt.Sprint("key_", i)]; !ok || value != fmt.Sprint(i) {
			return n, fmt.Errorf("key_%d is %q", i, value)
		}
	}
	return n, nil
}

// namesService reports whether a process has named its service, and not the receiver for it.
func namesService(resource map[string]string) bool {
	name := resource["service.name"]
	return name != "" && name != "unknown_service" && !strings.HasPrefix(name, "unknown_service:")
}

// checkChild: link only after the fork, names from its own context on, nothing
// after the exec.
func (row *contextRow) checkChild(t *testing.T, bounds *testutil.Bounds, hits []contextHit, log contextLog) {
	const names = 2 // when the child comes
	slack := uint64(childSlack)
	require.NotZero(t, log.child)
	phases := map[string]int{}
	other := log.ran + uint64(childExec) // from when on it runs the other program
	for i := range hits {
		if at := hits[i].timeUnixNano; at > log.ran && at < other && hits[i].executable == "spin-plain" {
			other = at
		}
	}
	for i := range hits {
		h := &hits[i]
		at := h.timeUnixNano
		named := namesService(h.resource)
		keys, err := countKeys(h)
		switch {
		case at < log.own-slack:
			phases["with its parent's record"]++
			if h.link == (link{}) && keys == 0 {
				row.late++
				continue
			}
			none := !named || h.batch+uint64(2*time.Second) >= log.own
			row.check(t, ofFork, h.link == updatedLink(names) && keys == 0 && none, "inherited: %v %v %v", h.link, h.attrs, h.resource)
		case at > log.own && at < log.ran:
			phases["with its own"]++
			if keys == 0 && err == nil && (h.link == link{} || h.link == updatedLink(names)) {
				row.late++
				continue
			}
			if keys == names && err == nil && h.link == updatedLink(names) && !named {
				row.late++ // read just before the exec, it is not believed: it might be the other program's
				continue
			}
			own := h.link == updatedLink(names) && keys == names && err == nil && h.resource["service.name"] == "child"
			row.check(t, ofFork, own, "of its own: %v %v %v", h.link, h.attrs, h.resource)
		case at >= other:
			phases["of another program"]++
			row.checkOther(t, h)
		}
	}
	fmt.Printf("%s: forked child: the other program is seen %v after it was to be run\n", row.writer, time.Duration(other-log.ran))
	require.Less(bounds, time.Duration(other-log.ran), childSeen, "%s: the other program is seen", row.writer)
	require.Len(bounds, phases, 3, "%s: forked child: %v", row.writer, phases)
}

// checkOther checks a sample of spin-plain, which was run by a writer.
func (row *contextRow) checkOther(t *testing.T, h *contextHit) {
	named := namesService(h.resource)
	none := h.link == link{} && h.attrs["trace_id"] == "" && !named && h.executable == "spin-plain"
	for key := range h.attrs {
		none = none && !strings.HasPrefix(key, "key_") && !strings.HasPrefix(key, prefix)
	}
	row.check(t, ofExec, none, "%s: %v %v", h.executable, h.attrs, h.resource)
}
