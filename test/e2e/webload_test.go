//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// A webLoad makes profiles as of a busy host: services with tenants and routes, thousands
// of functions in deep stacks of which there are ever more, a trace for every few samples, and a
// program that makes ten thousand label keys.
type webLoad struct {
	webBatch
	rand      *rand.Rand
	locations map[int]int32
	stacks    [][]int // of function numbers, leaf first
}

const (
	webLoadServices = 6
	webLoadStacks   = 20_000 // to begin with
	webLoadTraces   = 50_000
	webLoadKeys     = 10_000
	webLoadFresh    = 0.25 // of the samples have a stack that was not there before
)

// Of few samples, what they share has a larger part.
var webBytesASample = size(300, 700, 700)

// The goal of a question of a page, with a million samples; a busy machine takes several times
// as much.
const (
	webCPUAQuestion = 250 * time.Millisecond
	webCPUSlack     = 4
)

// webLoadFile is what the page has much of: a file that was recorded (labelprof serve
// --out-otlp), with at least webLoadSamples, or one that is made up.
func webLoadFile(t *testing.T, dir string) string {
	t.Helper()
	if recorded := os.Getenv("CUSTOM_LABELS_WEB_LOAD"); recorded != "" {
		return recorded
	}
	name := filepath.Join(dir, "load.otlp")
	writeWebLoad(t, name, webLoadSamples)
	return name
}

// requireWebFigures waits until the page has all of its file, and compares what it takes with
// the goals.
func requireWebFigures(t *testing.T, c *child, url string) {
	t.Helper()
	var view struct {
		Live            bool
		Received, Bytes int64
		MoreKeys        int
		Facets          []struct{}
		MoreFunctions   int
	}
	// Reading goes on however busy the machine is, and answers are not what keeps it from that.
	for received, grown := int64(-1), time.Now(); ; {
		asked := time.Now()
		webAsk(t, url, "", &view)
		if !view.Live {
			break
		}
		if view.Received > received {
			received, grown = view.Received, time.Now()
		}
		require.Less(t, time.Since(grown), webTimeout, "no more than %d samples are read", received)
		time.Sleep(500*time.Millisecond + 4*time.Since(asked))
	}
	require.GreaterOrEqual(t, view.Received, int64(webLoadSamples-1000))
	fmt.Printf("load: %d samples with %d label keys, %.0f bytes each (goal %d)\n",
		view.Received, len(view.Facets)+view.MoreKeys, float64(view.Bytes)/float64(view.Received), webBytesASample)
	require.LessOrEqual(t, view.Bytes/view.Received, int64(webBytesASample))
	const rounds = 4
	ask := func(query string) time.Duration {
		before := cpuTime(t, c.cmd.Process.Pid)
		webAsk(t, url, query, &view)
		return cpuTime(t, c.cmd.Process.Pid) - before
	}
	for _, query := range []string{"", "group=tenant", "l.tenant=tenant-1", "cmp=tenant&a=tenant-0&b=tenant-1", "find=tenant", "q=function"} {
		var first, again time.Duration
		for range rounds {
			ask("l.tenant=tenant-2") // nothing of another selection is kept
			first += ask(query) / rounds
			again += ask(query) / rounds
		}
		fmt.Printf("load: %4d ms of CPU for %q (goal %d), %d ms when it is asked again\n",
			first.Milliseconds(), query, webCPUAQuestion.Milliseconds(), again.Milliseconds())
		require.Less(t, first, webCPUSlack*webCPUAQuestion, query)
	}
}

// cpuTime is what a process has used.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	require.NoError(t, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(t, err)
	return time.Duration(user+system) * time.Second / procfs.TicksPerSecond
}

// writeWebLoad writes a file of OTLP requests with as many samples, 5 seconds each request.
func writeWebLoad(t *testing.T, name string, samples int) {
	t.Helper()
	l := &webLoad{rand: rand.New(rand.NewPCG(1, 2))}
	l.grow()
	file, err := os.Create(name)
	require.NoError(t, err)
	defer file.Close()
	const requests = 120
	start := time.Now().Add(-requests * 5 * time.Second)
	for i := range requests {
		l.fill(start.Add(time.Duration(i)*5*time.Second), samples/requests)
		data, err := pprofileotlp.NewExportRequestFromProfiles(l.profiles).MarshalProto()
		require.NoError(t, err)
		_, err = file.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
		require.NoError(t, err)
	}
}

// grow makes stacks that share their outer frames, as those of programs do.
func (l *webLoad) grow() {
	l.stacks = [][]int{{0}}
	for len(l.stacks) < webLoadStacks {
		l.branch()
	}
}

// branch adds a stack: some frames more on one that is there.
func (l *webLoad) branch() {
	below := l.stacks[int(float64(len(l.stacks))*l.rand.Float64()*l.rand.Float64())]
	if len(below) > 60 {
		below = below[20:]
	}
	stack := make([]int, 1+l.rand.IntN(6), 7+len(below))
	for i := range stack {
		stack[i] = int(20_000 * l.rand.Float64() * l.rand.Float64())
	}
	l.stacks = append(l.stacks, append(stack, below...))
}

func (l *webLoad) fill(at time.Time, samples int) {
	l.webBatch, l.locations = newWebBatch(), map[int]int32{}
	var all []pprofile.Profile
	for service := range webLoadServices {
		all = append(all, l.process(int64(1000+service), fmt.Sprintf("service-%d", service), at))
	}
	stacks := map[int]int32{}
	for range samples {
		s := all[int(webLoadServices*l.rand.Float64()*l.rand.Float64())].Samples().AppendEmpty()
		if l.rand.Float64() < webLoadFresh {
			l.branch()
		}
		number := l.rand.IntN(len(l.stacks))
		if _, ok := stacks[number]; !ok {
			stacks[number] = int32(l.dict.StackTable().Len())
			table := l.dict.StackTable().AppendEmpty().LocationIndices()
			for _, f := range l.stacks[number] {
				table.Append(l.location(f))
			}
		}
		s.SetStackIndex(stacks[number])
		tenant := int(10 * l.rand.Float64() * l.rand.Float64())
		s.AttributeIndices().Append(
			l.attribute(prefix+"tenant", fmt.Sprintf("tenant-%d", tenant)),
			l.attribute(prefix+"route", fmt.Sprintf("/route/%d", tenant*3+l.rand.IntN(3))),
			l.attribute(prefix+fmt.Sprintf("flag_%d", l.rand.IntN(webLoadKeys)), "on"),
			l.attribute("thread.name", fmt.Sprintf("worker-%d", l.rand.IntN(16))),
			l.attribute("trace_id", fmt.Sprintf("%032x", l.rand.IntN(webLoadTraces)+1)),
		)
		s.TimestampsUnixNano().Append(uint64(at.UnixNano() + l.rand.Int64N(int64(5*time.Second))))
	}
}

// location makes functions of kernel, libraries and programs, by their number.
func (l *webLoad) location(number int) int32 {
	if i, ok := l.locations[number]; ok {
		return i
	}
	kind, module := "native", fmt.Sprintf("/usr/lib/libpart%d.so", number%11)
	switch {
	case number%7 == 1:
		kind, module = "kernel", "[kernel.kallsyms]"
	case number%5 == 0:
		kind, module = "go", "/usr/bin/service"
	}
	i := l.frame(fmt.Sprintf("package%d::function_%d", number%40, number), module, kind)
	l.locations[number] = i
	return i
}
