//go:build linux && (amd64 || arm64)

package bpf

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What was read of an element counts only if the element is still whose it was: here, each
// is another's from the beginning.
func TestElementsOfOthers(t *testing.T) {
	r := newRowsTarget(t)
	tgt := r.start(t)
	tables := loadRows(t, r.s, tgt.pid)
	id := identify(t, r.s, tgt.pid)
	t.Run("label sources", func(t *testing.T) {
		key := id
		require.NoError(t, r.s.SetLabelSources(id, []record.LabelSource{{ABI: record.ABIV1, Offset: tgt.offsetV1}}))
		var entry record.ProcessEntry
		require.NoError(t, r.s.objs.Processes.Lookup(&key, &entry))
		for _, of := range []uint32{id.TGID, id.TGID + 1, id.TGID} {
			entry.Owner = of
			require.NoError(t, r.s.objs.Processes.Put(&key, &entry))
			known := false
			r.from(t, &tgt.pid, func(rec *Record) { known = rec.Known && len(rec.Labels) > 0 })
			require.Equal(t, of == id.TGID, known)
		}
	})
	// Nothing else tells of its mappings.
	for _, table := range tables {
		for _, file := range r.s.tables.slots[table].files {
			require.NoError(t, r.s.forgetFileRows(file, table))
		}
	}
	r.requireWhole(t, tgt)
	t.Run("list", func(t *testing.T) {
		var list record.UnwindList
		require.NoError(t, r.s.objs.UnwindLists.Lookup(&id, &list))
		list.Owner++
		require.NoError(t, r.s.objs.UnwindLists.Put(&id, &list))
		r.requireNoRows(t, tgt)
		list.Owner--
		require.NoError(t, r.s.objs.UnwindLists.Put(&id, &list))
		r.requireWhole(t, tgt)
	})
	t.Run("mappings", func(t *testing.T) {
		key := record.UnwindChunkKey{List: r.s.lists[id].id}
		var chunk record.UnwindChunk
		require.NoError(t, r.s.objs.UnwindMappings.Lookup(&key, &chunk))
		// Those of a number that was met before may be known already.
		var list record.UnwindList
		require.NoError(t, r.s.objs.UnwindLists.Lookup(&id, &list))
		key.List += 1000
		list.ID, chunk.List = key.List, key.List+1
		require.NoError(t, r.s.objs.UnwindMappings.Put(&key, &chunk))
		require.NoError(t, r.s.objs.UnwindLists.Put(&id, &list))
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
		for file := range r.s.tables.files {
			var known record.KnownRows
			require.NoError(t, r.s.objs.FileRows.Lookup(&file, &known))
			known.Inode++
			require.NoError(t, r.s.objs.FileRows.Put(&file, &known))
		}
		r.requireNoRows(t, tgt)
	})
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
	cache := labels.NewCache(1 << 20)
	seen, known := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		seen++
		d := cache.Decode(nil, r.Labels)
		if r.Known {
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
