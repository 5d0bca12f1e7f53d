package profile

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// workload is a batch of different entries: stacks of 30 frames out of 5,000
// functions, which share their outer ones, 10 labels each, 100 label sets.
func workload(entries int) []Sample {
	var sets []*labels.Set
	for i := range 100 {
		var l []labels.Label
		for j := range 10 {
			l = append(l, v1(fmt.Sprintf("key%d", j), fmt.Sprintf("value %d", i*j)))
		}
		sets = append(sets, labels.NewSet(false, l...))
	}
	batch := make([]Sample, entries)
	for i := range batch {
		batch[i] = sample()
		batch[i].Process, batch[i].Set = uint64(i%20), sets[i%100]
		batch[i].UserFrames = make([]uint64, 30)
		for j := range batch[i].UserFrames {
			outer := len(batch[i].UserFrames) - j // every other caller has two callees
			batch[i].UserFrames[j] = uint64((outer*131+i>>max(13-outer/2, 0))%5000) << 4
		}
	}
	return batch
}

type quietResolver struct{}

func (quietResolver) Wanted(uint64, int) bool { return true }

func (quietResolver) Resource(process uint64, attrs pcommon.Map) {
	attrs.PutInt("process.pid", int64(process))
}

func (quietResolver) RuntimeFrame(uint64, record.RuntimeWord, uint64) Frame { return Frame{} }

func (quietResolver) Expect(uint64, uint32, []uint64) {}

func (quietResolver) Epoch(uint64, uint32) uint32 { return 0 }

func (quietResolver) Frame(_ uint64, _ uint32, _ FrameKind, addr uint64) Frame {
	return Frame{Lines: []Line{{Function: fmt.Sprintf("function_%x", addr>>4)}}, Type: "native"}
}

func BenchmarkAddKnown(b *testing.B) {
	builder := NewBuilder(everything())
	batch := workload(1000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%100_000 == 0 {
			builder.Reset()
		}
		builder.Add(&batch[n%len(batch)])
	}
}

// Doubling the entries doubles the time: no table is searched linearly.
func BenchmarkBuild(b *testing.B) {
	for _, entries := range []int{1000, 2000, 4000, 8000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			builder := NewBuilder(everything())
			for _, s := range workload(entries) {
				builder.Add(&s)
			}
			b.ReportAllocs()
			for b.Loop() {
				buildOne(builder, quietResolver{}, 1000, 2000)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*entries), "ns/entry")
		})
	}
}

// Stacks of 100 frames that differ in the innermost ones, as those of most programs do.
func BenchmarkBuildDeep(b *testing.B) {
	const entries, depth, own = 1000, 100, 5
	builder := NewBuilder(everything())
	for i, s := range workload(entries) {
		s.Process = 1
		s.UserFrames = make([]uint64, depth)
		for j := range s.UserFrames {
			s.UserFrames[j] = uint64(j) << 4
			if j < own {
				s.UserFrames[j] = uint64(depth+i*own+j) << 4
			}
		}
		builder.Add(&s)
	}
	b.ReportAllocs()
	for b.Loop() {
		buildOne(builder, quietResolver{}, 1000, 2000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*entries), "ns/entry")
}
