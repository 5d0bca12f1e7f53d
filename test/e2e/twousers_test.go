//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	floodUser = 20001
	calmUser  = 20005
	quietUser = 20002           // of other tests, which run beside this one
	floodTime = 5 * time.Minute // at most
	floodMark = "flood"         // in all that user A has: labels, functions, paths
	// quietEnough samples of each writer of user B.
	quietEnough = 50

	// More than user B has of them in a batch, and far less than user A.
	twoUsersEntries = 1500
	twoUsersMemory  = 128 << 20
	twoUsersOverall = 128 << 20 // growth of the process, in which the test itself is
)

// floodSets are published at least; the writers of the flood do so as fast as they can.
var floodSets = size(1_000_000, 50_000, 50_000)

// TestTwoUsers: user A floods labels, keys, types, stacks and the ring buffer. User B,
// beside it, loses nothing, gets the right labels in every batch, and nothing of A is in
// B's batches. The receiver's memory stays under its limit.
func TestTwoUsers(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildWriters(t)
	log := filepath.Join(userDir(t, floodUser), "sets")
	// One of many sets, one of large ones.
	many := startUser(t, filepath.Join(dir, "writer-v1-exe"), floodUser, 0, "flood", "--threads", "2",
		"--labels", "4", "--value-bytes", "32", "--seconds", "300", "--log", log)
	large := startUser(t, filepath.Join(dir, "writer-v0-exe"), floodUser, 0, "flood", "--threads", "2",
		"--labels", "64", "--value-bytes", "96", "--seconds", "300")
	quiet := map[int64]*goodWriter{}
	for _, variant := range []string{"writer-v0-exe", "writer-v1-exe", "writer-ctx-exe"} {
		// A small part of the CPU: what is to be in its share of the ring buffer even when
		// the receiver has to wait for a CPU.
		w := startUser(t, filepath.Join(dir, variant), calmUser, 19, "fidelity", "--seconds", "300")
		quiet[int64(w.PID)] = &goodWriter{variant: variant, publishes: map[uint32]bool{}}
	}
	out := &userSink{t: t, quiet: quiet, addresses: executableRanges(t, many.PID, large.PID), users: map[string]*userTally{}}
	before := heapBytes()
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 10_000
		c.ReportInterval = time.Second
		floods, isQuiet := int64(floodUser), int64(calmUser) // not what else a busy machine does
		c.Targets.Include = []customlabelsreceiver.TargetSelector{{UID: &floods}, {UID: &isQuiet}}
		c.BatchPerUser = true
		c.MaxMemoryBytes = twoUsersMemory
	}, func(o *pipeline.Options) {
		// A second of user B, some milliseconds of user A.
		o.Ring = pipeline.RingOptions{Bytes: 4 << 20, UserShare: 0.25}
		o.Batches.MaxUserEntries = twoUsersEntries
		o.Batches.MaxBytes, o.Batches.MaxPending = 8<<20, 16
		o.Symbols.MaxBytes = 16 << 20
	})
	var memory, heap int64
	sets := 0
	dropped := func() map[string]int64 { return r.metric("user_dropped_samples", "process.real_user.id", "reason") }
	entries := func() map[string]int64 { return r.metric("user_entry_overflow", "process.real_user.id", "lost") }
	budgets := func() map[string]int64 { return r.metric("overflow_samples", "process.real_user.id", "budget") }
	conflicted := func() map[string]int64 { return r.metric("type_conflicts", "process.real_user.id", "result") }
	lostStacks, lostKeys := strconv.Itoa(floodUser)+"/stacks", strconv.Itoa(floodUser)+"/keys"
	for end := time.Now().Add(floodTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		used := int64(0)
		for _, n := range r.metric("memory_used", "part") {
			used += n
		}
		memory, heap = max(memory, used), max(heap, heapBytes()-before)
		sets = max(sets, publishedSets(t, log)) // the file is empty while it is written
		if sets >= floodSets && out.enough() && dropped()[userShare(floodUser)] > 100 && entries()[lostStacks] > 100 &&
			len(conflicted()) > 0 && budgets()[lostKeys] > 0 {
			break
		}
	}
	overflow := entries()
	labelOverflow, conflicts := budgets(), conflicted()
	unsent := r.metric("dropped_samples", "reason")["pending_full"]
	drops := dropped()
	r.stop()

	a, b := out.tally(floodUser), out.tally(calmUser)
	fmt.Printf("%-4s %9s %9s %8s %14s %14s %14s\n", "user", "batches", "samples", "dropped", "labels lost", "stacks lost", "of A in it")
	for name, uid := range map[string]int{"A": floodUser, "B": calmUser} {
		u, id := out.tally(uid), strconv.Itoa(uid)
		lost := overflow[id+"/labels"]
		for budget, n := range labelOverflow {
			if strings.HasPrefix(budget, id+"/") {
				lost += n
			}
		}
		fmt.Printf("%-4s %9d %9d %8d %14d %14d %14d\n", name, u.batches, u.hits, drops[userShare(uid)], lost, overflow[id+"/stacks"], u.foreign)
	}
	fmt.Printf("A has published %d label sets; its largest batch has %d entries\n", sets, a.entries)
	fmt.Printf("by user and reason: drops %v, entries %v, budgets %v, type conflicts %v\n", drops, overflow, labelOverflow, conflicts)
	fmt.Printf("memory in use: at most %.1f of %d MiB as the receiver counts it, %.1f MiB of Go's heap with the test\n",
		float64(memory)/(1<<20), twoUsersMemory>>20, float64(heap)/(1<<20))
	account := r.account()
	fmt.Printf("%v\n", account)

	require.GreaterOrEqual(t, sets, floodSets, "A published too little within %v", floodTime)
	for _, w := range quiet {
		w.check(t)
	}
	// The flood is one, and costs A alone.
	require.NotZero(t, drops[userShare(floodUser)])
	require.Zero(t, drops[userShare(calmUser)])
	require.Zero(t, account["dropped_ring_full"])
	require.NotZero(t, overflow[lostStacks])
	require.LessOrEqual(t, a.entries, 2*twoUsersEntries+20)
	require.NotZero(t, labelOverflow[lostKeys])
	for _, by := range []map[string]int64{overflow, labelOverflow, conflicts} {
		for name := range by {
			require.False(t, strings.HasPrefix(name, strconv.Itoa(calmUser)+"/"), "%s", name)
		}
	}
	require.NotEmpty(t, conflicts)
	require.Zero(t, b.foreign, "in batches of B: %s", b.example)
	require.Zero(t, b.overflown)
	require.GreaterOrEqual(t, b.batches, 3)
	require.Less(t, memory, int64(twoUsersMemory))
	require.Less(t, heap, int64(twoUsersOverall))
	require.Zero(t, account["dropped_no_memory"])
	own := int64(0) // of those who had too much themselves: A, or root on a busy machine
	for name, n := range drops {
		if strings.HasSuffix(name, "/pending_full") {
			own += n
		}
	}
	require.LessOrEqual(t, unsent, own, "batches of all users were dropped")
	require.Zero(t, drops[strconv.Itoa(calmUser)+"/pending_full"])
	requireClosed(t, account)
}

func userShare(uid int) string { return strconv.Itoa(uid) + "/user_share" }

// userDir makes a directory of a user.
func userDir(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", fmt.Sprintf("user%d-", uid))
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the user has to get to what is in it
	require.NoError(t, os.Chown(dir, uid, uid))
	return dir
}

// startUser runs a writer as another user, who may not see where it was built.
func startUser(t *testing.T, path string, uid, nice int, args ...string) *testutil.Writer {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", args[0])
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // the other user has to run what is in it
	public := filepath.Join(dir, filepath.Base(path))
	require.NoError(t, os.WriteFile(public, text, 0o755)) //nolint:gosec // likewise
	setpriv, err := exec.LookPath("setpriv")
	require.NoError(t, err)
	return testutil.StartPath(t, setpriv, append([]string{
		"--reuid", strconv.Itoa(uid), "--clear-groups", "nice", "-n", strconv.Itoa(nice), public,
	}, args...)...)
}

// publishedSets is how many the flood has told of; 0 while it writes that down.
func publishedSets(t *testing.T, log string) int {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

type addressRange struct{ start, limit uint64 }

// executableRanges of the processes' own code: that of their executables.
func executableRanges(t *testing.T, pids ...int) (ranges []addressRange) {
	t.Helper()
	for _, pid := range pids {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		require.NoError(t, err)
		for line := range strings.Lines(string(maps)) {
			var r addressRange
			var perms string
			if _, err := fmt.Sscanf(line, "%x-%x %s", &r.start, &r.limit, &perms); err == nil && perms[2] == 'x' && strings.Contains(line, floodMark) {
				ranges = append(ranges, r)
			}
		}
	}
	require.Len(t, ranges, len(pids))
	return ranges
}

// A userTally is what arrived of a user.
type userTally struct {
	batches, hits int
	entries       int // of the largest batch
	overflown     int // samples with the mark
	foreign       int // of user A, in batches of another user
	example       string
}

// A userSink is the next consumer of batches by user.
type userSink struct {
	t         *testing.T
	quiet     map[int64]*goodWriter
	addresses []addressRange // of A

	mu    sync.Mutex
	users map[string]*userTally
}

func (s *userSink) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (s *userSink) ConsumeProfiles(ctx context.Context, p pprofile.Profiles) error {
	user := strings.Join(client.FromContext(ctx).Metadata.Get("custom_labels.user"), "+")
	checkConformance(s.t, p)
	b, err := flatten(p)
	assert.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[user]
	if u == nil {
		u = &userTally{}
		s.users[user] = u
	}
	u.batches++
	u.hits += len(b.hits)
	entries := 0
	for _, rp := range p.ResourceProfiles().All() {
		uid, _ := rp.Resource().Attributes().Get("process.real_user.id")
		assert.Equal(s.t, user, uid.AsString())
		entries += rp.ScopeProfiles().At(0).Profiles().At(0).Samples().Len()
	}
	u.entries = max(u.entries, entries)
	if user != strconv.Itoa(floodUser) {
		s.search(u, p)
	}
	if user == strconv.Itoa(calmUser) {
		for i := range b.hits {
			h := &b.hits[i]
			if h.attrs["custom_labels.overflow"] != "" {
				u.overflown++
			}
			// The writers may have been found in the course of the first batches.
			if w := s.quiet[h.pid]; w != nil && u.batches > 2 {
				w.add(h)
			}
		}
	}
	return nil
}

// search looks for anything of user A.
func (s *userSink) search(u *userTally, p pprofile.Profiles) {
	found := func(format string, args ...any) {
		u.foreign++
		u.example = fmt.Sprintf(format, args...)
	}
	for _, l := range p.Dictionary().LocationTable().All() {
		for _, r := range s.addresses {
			if l.Address() >= r.start && l.Address() < r.limit {
				found("address %#x", l.Address())
			}
		}
	}
	for _, text := range p.Dictionary().StringTable().All() {
		if strings.Contains(text, floodMark) {
			found("%q", text)
		}
	}
	raw, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	assert.NoError(s.t, err)
	if at := bytes.Index(raw, []byte(floodMark)); at >= 0 {
		found("%q", raw[max(0, at-20):min(len(raw), at+40)])
	}
}

func (s *userSink) tally(uid int) userTally {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[strconv.Itoa(uid)]; u != nil {
		return *u
	}
	return userTally{}
}

// enough reports whether there is enough of user B.
func (s *userSink) enough() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.quiet {
		if w.checked < quietEnough {
			return false
		}
	}
	return true
}
