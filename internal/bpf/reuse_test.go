//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What was read of an element counts only if it was set for its key, as a whole. Here an
// element is another key's from the beginning, or has a part of another one.
func TestElementsOfOthers(t *testing.T) {
	r := newRowsTarget(t)
	tgt := r.start(t)
	tables := loadRows(t, r.s, tgt.pid)
	id := identify(t, r.s, tgt.pid)
	other := id
	other.StartNs++
	t.Run("label sources", func(t *testing.T) {
		require.NoError(t, r.s.SetLabelSources(id, []record.LabelSource{{ABI: record.ABIV1, Offset: tgt.offsetV1}}))
		var sources record.LabelSources
		require.NoError(t, r.s.objs.LabelSources.Lookup(&id, &sources))
		put := func(sources record.LabelSources) (known bool) {
			require.NoError(t, r.s.objs.LabelSources.Put(&id, &sources))
			r.from(t, &tgt.pid, func(rec *Record) { known = len(rec.Labels) > 0 })
			return known
		}
		for _, change := range []func(l *record.LabelSources){
			func(l *record.LabelSources) { sealSources(&other, l) },
			func(l *record.LabelSources) { l.Source[0].Offset += 8 },
			func(l *record.LabelSources) { l.Count++ },
			func(l *record.LabelSources) { l.Presumed = true },
		} {
			changed := sources
			change(&changed)
			require.False(t, put(changed))
			require.True(t, put(sources))
		}
	})
	// Nothing else tells of its mappings.
	for _, table := range tables {
		for _, file := range r.s.tables.slots[table].files {
			require.NoError(t, r.s.forgetFileRows(file, table))
		}
	}
	r.requireWhole(t, tgt)
	t.Run("process", func(t *testing.T) {
		var entry record.ProcessEntry
		require.NoError(t, r.s.objs.Processes.Lookup(&id, &entry))
		for _, change := range []func(e *record.ProcessEntry){
			func(e *record.ProcessEntry) { sealProcess(&other, e) },
			func(e *record.ProcessEntry) { e.Runtime = uint8(record.RuntimeV8) },
		} {
			changed := entry
			change(&changed)
			require.NoError(t, r.s.objs.Processes.Put(&id, &changed))
			r.requireNoRows(t, tgt)
			require.NoError(t, r.s.objs.Processes.Put(&id, &entry))
			r.requireWhole(t, tgt)
		}
	})
	t.Run("mappings", func(t *testing.T) {
		key := record.UnwindChunkKey{List: r.s.processes[id].entry.List}
		var chunk record.UnwindChunk
		require.NoError(t, r.s.objs.UnwindMappings.Lookup(&key, &chunk))
		// Those of a number that was met before may be known already.
		var entry record.ProcessEntry
		require.NoError(t, r.s.objs.Processes.Lookup(&id, &entry))
		key.List += 1000
		entry.List, chunk.List = key.List, key.List+1
		sealProcess(&id, &entry)
		require.NoError(t, r.s.objs.UnwindMappings.Put(&key, &chunk))
		require.NoError(t, r.s.objs.Processes.Put(&id, &entry))
		r.requireNoRows(t, tgt)
		chunk.List--
		require.NoError(t, r.s.objs.UnwindMappings.Put(&key, &chunk))
		r.requireWhole(t, tgt)
	})
	t.Run("rows of a file", func(t *testing.T) {
		needFileNames(t, r.s)
		require.NoError(t, r.s.ForgetMappings(id))
		loadRows(t, r.s, tgt.pid)
		require.NoError(t, r.s.ForgetMappings(id))
		r.requireWhole(t, tgt)
		for _, change := range []func(file record.FileKey, known *record.KnownRows){
			func(file record.FileKey, known *record.KnownRows) {
				file.Size++
				sealRows(&file, known)
			},
			func(_ record.FileKey, known *record.KnownRows) { known.Texts[record.MaxFileTexts-1].Text++ },
		} {
			for file := range r.s.tables.files {
				var known record.KnownRows
				require.NoError(t, r.s.objs.FileRows.Lookup(&file, &known))
				sealRows(&file, &known)
				change(file, &known)
				require.NoError(t, r.s.objs.FileRows.Put(&file, &known))
			}
			r.requireNoRows(t, tgt)
		}
	})
}

// The same for a language runtime.
func TestRuntimeOfOthers(t *testing.T) {
	program := buildHotSpot(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	require.NoError(t, s.Start())
	var pid uint32
	var heap, segments uint64
	_, err := fmt.Sscan(startProgram(t, program, "endless"), &pid, &heap, &segments)
	require.NoError(t, err)
	id := identify(t, s, pid)
	require.NoError(t, s.SetRuntime(id, hotSpotOf(heap, segments)))
	require.NoError(t, s.SetUnwindMappings(id, nil, 0))
	var runtime record.RuntimeProcess
	require.NoError(t, s.objs.Runtimes.Lookup(&id, &runtime))
	other := id
	other.ExecID++
	for _, tc := range []struct {
		change func(r *record.RuntimeProcess)
		counts bool
	}{
		{func(*record.RuntimeProcess) {}, true},
		{func(r *record.RuntimeProcess) { sealRuntime(&other, r) }, false},
		{func(r *record.RuntimeProcess) { r.Python.ThreadNext++ }, true}, // it is none of its kind
		{func(r *record.RuntimeProcess) { r.HotSpot.BlockBytes++ }, false},
		{func(r *record.RuntimeProcess) { r.Kind = record.RuntimeV8; sealRuntime(&id, r) }, false}, // the list says another
	} {
		changed := runtime
		tc.change(&changed)
		require.NoError(t, s.objs.Runtimes.Put(&id, &changed))
		var told unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &told))
		seen := 0
		readUntil(t, s, func(r *Record) bool {
			if r.PID != pid || r.TimeNs < uint64(told.Nano()) || len(r.UserFrames) == 0 {
				return false
			}
			if r.UserFrames[0] >= 1<<63 {
				require.True(t, tc.counts)
				return true
			}
			seen++
			return !tc.counts && seen > 100
		})
	}
}

// from passes on the next sample that is taken of a process from now on.
func (r *rowsTarget) from(t *testing.T, pid *uint32, visit func(*Record)) {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	readUntil(t, r.s, func(rec *Record) bool {
		if rec.PID != *pid || rec.TimeNs < uint64(now.Nano()) {
			return false
		}
		visit(rec)
		return true
	})
}

// While a process is sampled, its sources are replaced all the time, and with them those of
// a process that has others: it is never read with these.
func TestReplacedElements(t *testing.T) {
	const samples = 1500
	s := newSampler(t, Config{SamplesPerSecond: 2000, RingBufferBytes: 1 << 20})
	program := buildTarget(t)
	tgt, other := startTarget(t, program, "labels-64"), startTarget(t, program, "labels-1")
	pin(t, tgt.pid, runtime.NumCPU()-1)
	id, otherID := identify(t, s, tgt.pid), identify(t, s, other.pid)
	require.NoError(t, unix.Kill(int(other.pid), unix.SIGSTOP))
	var own, others []record.LabelSource
	for range record.MaxLabelSources {
		own = append(own, record.LabelSource{ABI: record.ABIV1, Offset: tgt.offsetV1})
		others = append(others, record.LabelSource{ABI: record.ABIThreadContext, Offset: 4711})
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			for _, err := range []error{s.SetLabelSources(id, own), s.SetLabelSources(otherID, others)} {
				if err != nil {
					stopped <- err
					return
				}
			}
		}
	}()
	require.NoError(t, s.Start())
	seen, known := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		seen++
		d := labels.Decode(nil, r.Labels)
		if len(r.Labels) > 0 {
			known++
			require.Len(t, d.Reads, record.MaxLabelSources)
		}
		for _, read := range d.Reads {
			require.Equal(t, record.ABIV1, read.ABI, "sample %d", seen)
		}
		return seen == samples
	})
	close(stop)
	require.NoError(t, <-stopped)
	t.Logf("%d of %d samples have labels", known, seen)
	require.NotZero(t, known)
}
