//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// A webLoad makes profiles as of a busy host: services with tenants and routes, a few
// thousand functions in deep stacks, a trace for every few samples.
type webLoad struct {
	webBatch
	rand      *rand.Rand
	locations map[int]int32
	stacks    [][]int // of function numbers, leaf first
}

const (
	webLoadServices = 6
	webLoadStacks   = 20_000
	webLoadTraces   = 50_000
)

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
		below := l.stacks[int(float64(len(l.stacks))*l.rand.Float64()*l.rand.Float64())]
		if len(below) > 60 {
			continue
		}
		stack := append([]int{int(3000 * l.rand.Float64() * l.rand.Float64())}, below...)
		l.stacks = append(l.stacks, stack)
	}
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
