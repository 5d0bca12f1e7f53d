//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
	"github.com/customlabels/otelcol-customlabels/test/trend"
)

// soakGrowth is the share of its median by which something may have grown for certain from
// the end of the warm-up to the end: less is not told from what a longer run would level.
const soakGrowth = 0.02

// soakColumns are what must not grow.
var soakColumns = [...]struct {
	name string
	of   func(*soakRow) float64
}{
	{"RSS MiB", func(r *soakRow) float64 { return r.resident }},
	{"heap MiB", func(r *soakRow) float64 { return r.heap }},
	{"goroutines", func(r *soakRow) float64 { return float64(r.goroutines) }},
	{"descriptors", func(r *soakRow) float64 { return float64(r.objects.descriptors - r.objects.files) }},
	{"files", func(r *soakRow) float64 { return float64(r.objects.files) }},
	{"BPF MiB", func(r *soakRow) float64 { return r.mapBytes }},
	{"BPF maps", func(r *soakRow) float64 { return float64(len(r.objects.maps) + len(r.objects.tables)) }},
	{"entries", func(r *soakRow) float64 { return float64(r.entries) }},
	{"LRU entries", func(r *soakRow) float64 { return float64(r.lruEntries) }},
}

// A soakRow is what the collector holds at the end of a round.
type soakRow struct {
	minute              float64
	resident, heap      float64 // MiB
	goroutines          int
	objects             kernelObjects
	mapBytes            float64 // MiB
	entries, lruEntries int     // of hash maps
	samples, processes  int     // received
	slow                bool    // the consumer
}

// A soakTable has a row for each round.
type soakTable struct{ rows []*soakRow }

func (s *soakTable) add(r *soakRow) { s.rows = append(s.rows, r) }

func (s *soakTable) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6s", "minute")
	for _, c := range soakColumns {
		fmt.Fprintf(&b, "  %11s", c.name)
	}
	return b.String() + "  samples  processes  consumer"
}

func (r *soakRow) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6.1f", r.minute)
	for _, c := range soakColumns {
		fmt.Fprintf(&b, "  %11.6g", c.of(r))
	}
	fmt.Fprintf(&b, "  %7d  %9d", r.samples, r.processes)
	if r.slow {
		b.WriteString("  slow")
	}
	return b.String()
}

// after are the rows after the warm-up.
func (s *soakTable) after(warm time.Duration) []*soakRow {
	for i, r := range s.rows {
		if r.minute > warm.Minutes() {
			return s.rows[i:]
		}
	}
	return nil
}

// judge fails for each column that has grown for certain since the warm-up.
func (s *soakTable) judge(t *testing.T, warm time.Duration) {
	t.Helper()
	rows := s.after(warm)
	fmt.Printf("growth in %d rounds after the warm-up, by the median slope and its interval of 99.8 %%:\n", len(rows))
	growing := 0
	for _, c := range soakColumns {
		var values []float64
		for _, r := range rows {
			values = append(values, c.of(r))
		}
		slope, steps, middle := trend.Of(values), float64(len(rows)-1), paired.Of(values).Median
		grows := slope.Low*steps > soakGrowth*middle
		verdict := "flat"
		if grows {
			verdict = "GROWS"
			growing++
		}
		fmt.Printf("  %-11s  %+9.4g, %+9.4g to %+9.4g, at a median of %9.5g: %s\n",
			c.name, slope.Median*steps, slope.Low*steps, slope.High*steps, middle, verdict)
		assert.False(t, grows, "%s", c.name)
	}
	fmt.Printf("%d of %d figures are flat over %.0f minutes after the warm-up\n",
		len(soakColumns)-growing, len(soakColumns), rows[len(rows)-1].minute-warm.Minutes())
}

func measureSoak(c *collector, address string) *soakRow {
	c.t.Helper()
	pid := c.cmd.Process.Pid
	r := &soakRow{objects: kernelObjectsOf(c.t, pid)}
	for _, id := range slices.Concat(r.objects.maps, r.objects.tables) {
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue // a table of rows that has gone
		}
		require.NoError(c.t, err)
		r.addMap(c.t, m)
		require.NoError(c.t, m.Close())
	}
	r.goroutines = int(pprofNumber(c.t, address, "goroutine?debug=1", "goroutine profile: total "))
	r.heap = pprofNumber(c.t, address, "heap?gc=1&debug=1", "# HeapAlloc = ") / (1 << 20)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(c.t, err)
	var size, resident float64
	_, err = fmt.Sscan(string(text), &size, &resident)
	require.NoError(c.t, err)
	r.resident = resident * float64(os.Getpagesize()) / (1 << 20)
	return r
}

func (r *soakRow) addMap(t *testing.T, m *ebpf.Map) {
	t.Helper()
	info, err := m.Info()
	require.NoError(t, err)
	if bytes, ok := info.Memlock(); ok {
		r.mapBytes += float64(bytes) / (1 << 20)
	}
	var to *int
	switch info.Type {
	case ebpf.Hash:
		to = &r.entries
	case ebpf.LRUHash:
		to = &r.lruEntries
	default:
		return
	}
	key := make([]byte, info.KeySize)
	n := 0
	for err = m.NextKey(nil, key); err == nil && n < int(info.MaxEntries); err = m.NextKey(key, key) {
		n++
	}
	*to += n
}

// pprofNumber asks the collector's extension for a profile and returns the number after a text in it.
func pprofNumber(t *testing.T, address, profile, before string) float64 {
	t.Helper()
	client := http.Client{Timeout: childStartTimeout}
	answer, err := client.Get("http://" + address + "/debug/pprof/" + profile)
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), before); ok {
			var n float64
			_, err := fmt.Sscan(rest, &n)
			require.NoError(t, err)
			return n
		}
	}
	require.FailNow(t, "no number", "%q of %s: %v", before, profile, lines.Err())
	return 0
}
