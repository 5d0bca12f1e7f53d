package profile

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// heapBytes is what is in use of the heap.
func heapBytes() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// built makes one request of Builders. It returns by how much the heap has grown when that is handed over, with all
// that is needed for it, and how much is told of it.
func built(t *testing.T, r Resolver, builders ...*Builder) (p pprofile.Profiles, stats BuildStats, grown, told int) {
	t.Helper()
	before, held, peak, requests := heapBytes(), 0, 0, 0
	for p, stats = range Requests(builders, r, slices.Repeat([]uint64{1000}, len(builders)), 2000, 1<<30, new(uint64), func(bytes int) {
		held += bytes
		peak = max(peak, held)
	}) {
		requests++
		grown = heapBytes() - before
		require.Equal(t, peak, held)
	}
	require.Equal(t, 1, requests)
	require.Zero(t, held)
	for _, b := range builders {
		told += b.OutputBytes()
	}
	return p, stats, grown, told + peak
}

// What Requests makes, and needs for that, takes no more than is told of it.
func TestOutputBytesBoundBuild(t *testing.T) {
	for name, fill := range map[string]func() *Builder{
		"nothing": func() *Builder { return NewBuilder(everything()) },
		"usual": func() *Builder {
			b := NewBuilder(everything())
			for _, s := range workload(5000) {
				b.Add(&s)
			}
			return b
		},
		"stacks of one frame": func() *Builder {
			b := NewBuilder(Options{Period: 1})
			flood(b, 1, 20_000, 1)
			return b
		},
		"deep stacks": func() *Builder {
			b := NewBuilder(Options{Period: 1})
			flood(b, 1, 100, 1000)
			return b
		},
		"links": func() *Builder {
			b := NewBuilder(everything())
			for i := range 20_000 {
				s := sample()
				s.Link = labels.Link{TraceID: [16]byte{byte(i), byte(i >> 8), 1}, SpanID: [8]byte{1}}
				b.Add(&s)
			}
			return b
		},
		"samples of one entry": func() *Builder {
			b := NewBuilder(Options{Period: 1})
			for range 100_000 {
				s := sample()
				b.Add(&s)
			}
			return b
		},
		"absences": func() *Builder {
			b := NewBuilder(Options{OffCPU: &OffCPU{Threshold: 1}})
			for i := range 20_000 {
				s := sample()
				s.TID, s.OffCPUNs, s.UserFrames = uint32(i), int64(i), []uint64{uint64(i)}
				b.Add(&s)
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, grown, told := built(t, quietResolver{}, fill())
			t.Logf("grown by %d, told %d", grown, told)
			const little = 16 << 10 // of the empty tables
			require.LessOrEqual(t, grown, told+little)
		})
	}
}

// publishing has processes publish resources.
type publishing struct {
	quietResolver
	put func(pcommon.Map)
}

func (p publishing) Resource(_ uint64, attrs pcommon.Map) { p.put(attrs) }

// Resources of processes take no more than is told of them.
func TestOutputBytesOfResources(t *testing.T) {
	const processes, values = 50, 1000
	for name, put := range map[string]func(pcommon.Map){
		"strings": func(m pcommon.Map) {
			for i := range values {
				m.PutStr(fmt.Sprint("key", i), strings.Repeat("x", i))
			}
		},
		"bytes": func(m pcommon.Map) { m.PutEmptyBytes("b").FromRaw(make([]byte, 128<<10)) },
		"list": func(m pcommon.Map) {
			list := m.PutEmptySlice("list")
			for i := range values {
				list.AppendEmpty().SetInt(int64(i))
			}
		},
		"lists": func(m pcommon.Map) {
			list := m.PutEmptySlice("list")
			for range values {
				list.AppendEmpty().SetEmptySlice().AppendEmpty().SetDouble(1)
			}
		},
		"maps": func(m pcommon.Map) {
			of := m.PutEmptyMap("map")
			for i := range values {
				of.PutEmptyMap(fmt.Sprint(i)).PutBool("b", true)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(Options{Period: 1})
			for i := range processes {
				b.Add(&Sample{Process: uint64(i + 1)})
			}
			_, _, grown, told := built(t, publishing{put: put}, b)
			t.Logf("grown by %d, told %d", grown, told)
			const little = 16 << 10 // of the empty tables
			require.LessOrEqual(t, grown, told+little)
			require.Less(t, told, 4*grown)
		})
	}
}

// Stacks count the same whether they are new in a batch or known from the one before.
func TestOutputBytesOfKnownStacks(t *testing.T) {
	const stacks, depth = 500, 100
	b := NewBuilder(everything())
	flood(b, 1, stacks, depth)
	fresh, bytes := b.OutputBytes(), b.Bytes()
	b.Reset()
	flood(b, 1, stacks, depth)
	require.Less(t, b.Bytes(), bytes, "the stacks are known")
	require.Equal(t, fresh, b.OutputBytes())
	require.Equal(t, outputShare*stacks*(entryBytes+sampleBytes)+b.stacks.bytes+locationBytes*stacks*depth, fresh)
}
