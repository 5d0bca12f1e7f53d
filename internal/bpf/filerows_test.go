//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A file is not mapped if that may wait for a server.
func TestAsksServer(t *testing.T) {
	for _, magic := range []int64{0x65735546, 0x6969, 0xff534d42, 0xfe534d42, 0x73757245, 0x01161970, 0x7461636f, 0xc36400, 0x1021997, 0x6b414653} {
		require.True(t, asksServer(magic), "%#x", magic)
	}
	for _, magic := range []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		require.False(t, asksServer(magic), "%#x", magic)
	}
}

const rowsDepth = 100

// A rowsTarget is a program without frame pointers that stays in rowsDepth frames of a function.
type rowsTarget struct {
	s       *Sampler
	program string
}

func newRowsTarget(t *testing.T) *rowsTarget {
	t.Helper()
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	return &rowsTarget{s, buildTargetWith(t, "-fomit-frame-pointer", "-momit-leaf-frame-pointer")}
}

func (r *rowsTarget) start(t *testing.T) *target {
	t.Helper()
	tgt := startTarget(t, r.program, "depth-100")
	return &tgt
}

// outcome is how the stack of a target is walked from now on.
func (r *rowsTarget) outcome(t *testing.T, of *target) (outcome record.Outcome, frames int) {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	readUntil(t, r.s, func(rec *Record) bool {
		if rec.PID != of.pid || rec.TimeNs < uint64(now.Nano()) || len(rec.KernelFrames) > 0 || !of.in(rec.UserFrames[0]) {
			return false
		}
		outcome, frames = rec.UserStack, len(rec.UserFrames)
		return true
	})
	return outcome, frames
}

func (r *rowsTarget) requireWhole(t *testing.T, of *target) {
	t.Helper()
	for range samplesPerState {
		outcome, frames := r.outcome(t, of)
		require.Equal(t, record.OutcomePresent.String(), outcome.String())
		require.Greater(t, frames, rowsDepth+2)
	}
}

func (r *rowsTarget) requireNoRows(t *testing.T, of *target) {
	t.Helper()
	for range samplesPerState {
		outcome, _ := r.outcome(t, of)
		require.Equal(t, record.OutcomeNoRows.String(), outcome.String())
	}
}

func (r *rowsTarget) drop(t *testing.T, of *target, tables []record.TableID) {
	t.Helper()
	for _, id := range tables {
		require.NoError(t, r.s.RemoveUnwindTable(id))
	}
	require.NoError(t, r.s.ForgetMappings(identify(t, r.s, of.pid)))
}

// A process that no list of mappings is known of is walked by the rows of the files that
// it maps, from the kernel's own tree of mappings, as long as there are any.
func TestRowsByFile(t *testing.T) {
	r := newRowsTarget(t)
	needFileNames(t, r.s)
	known := r.start(t)
	r.requireNoRows(t, known)
	tables := loadRows(t, r.s, known.pid)
	r.requireWhole(t, known)
	next := r.start(t)
	r.requireWhole(t, next)
	r.drop(t, known, tables)
	r.requireNoRows(t, next)
	require.Empty(t, r.s.tables.files)
	var key record.FileKey
	require.False(t, r.s.objs.FileRows.Iterate().Next(&key, &record.KnownRows{}), "nothing is left")
}

// A list that is gone, as a forked child's is when its parent has another one or has ended, is as good as none: what
// the kernel tells instead is not kept for whoever has the list as well.
func TestLostList(t *testing.T) {
	r := newRowsTarget(t)
	needFileNames(t, r.s)
	tables := loadRows(t, r.s, r.start(t).pid)
	child := r.start(t)
	id := identify(t, r.s, child.pid)
	r.s.listID++
	for _, mappings := range []uint32{1, 3 * record.UnwindChunkMappings} {
		lost := record.ProcessEntry{List: r.s.listID, Mappings: mappings, ExecPages: execPages(t, child.pid)}
		require.NoError(t, r.s.put(id, &lost, true))
		skipOlder(t, r.s)
		r.requireWhole(t, child)
	}
	for file := range maps.Clone(r.s.tables.files) {
		for _, table := range tables {
			require.NoError(t, r.s.RemoveFileRows(file, table))
		}
	}
	skipOlder(t, r.s)
	r.requireNoRows(t, child)
}

// Two tables of the same files, as two containers of one image had them: when one is
// removed, in whichever order they came, new processes are walked by the other.
func TestTwoTablesOfOneFile(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprintf("container %d ends first", first), func(t *testing.T) {
			r := newRowsTarget(t)
			needFileNames(t, r.s)
			var containers [2]*target
			var tables [2][]record.TableID
			for i := range containers {
				containers[i] = r.start(t)
				tables[i] = loadRows(t, r.s, containers[i].pid)
				r.requireWhole(t, r.start(t))
			}
			r.drop(t, containers[first], tables[first])
			r.requireWhole(t, containers[1-first])
			r.requireWhole(t, r.start(t))
			r.drop(t, containers[1-first], tables[1-first])
			r.requireNoRows(t, r.start(t))
		})
	}
}

// What was said of a file last holds: twice of a table is once, and what is newer is used.
func TestFileRowsReplaced(t *testing.T) {
	r := newRowsTarget(t)
	needFileNames(t, r.s)
	known := r.start(t)
	good := loadRows(t, r.s, known.pid)
	ends := loadRowsAs(t, r.s, known.pid, endEverywhere)
	next := r.start(t)
	outcome, frames := r.outcome(t, next)
	require.Equal(t, record.OutcomePresent.String(), outcome.String())
	require.Equal(t, 1, frames)
	for file, rows := range r.s.tables.files {
		first := rows[0]
		require.NoError(t, r.s.SetFileRows(file, first.table, first.texts))
		require.Len(t, r.s.tables.files[file], 2)
	}
	r.requireWhole(t, next)
	r.drop(t, known, ends)
	r.requireWhole(t, next)
	r.drop(t, known, good)
	r.requireNoRows(t, next)
	require.Error(t, r.s.SetFileRows(record.FileKey{Inode: 1}, good[0], nil), "of a table that is gone")
}

// Rows of a file are taken back, those of another table first: the ones before hold again.
func TestFileRowsRemoved(t *testing.T) {
	r := newRowsTarget(t)
	needFileNames(t, r.s)
	known := r.start(t)
	good := loadRows(t, r.s, known.pid)
	ends := loadRowsAs(t, r.s, known.pid, endEverywhere)
	files := maps.Clone(r.s.tables.files)
	remove := func(i int) {
		for file, rows := range files {
			require.NoError(t, r.s.RemoveFileRows(file, rows[i].table))
			require.NoError(t, r.s.RemoveFileRows(file, rows[i].table), "twice")
		}
	}
	for file, rows := range files { // removing takes from the slices
		files[file] = slices.Clone(rows)
	}
	remove(1)
	next := r.start(t)
	r.requireWhole(t, next)
	remove(0)
	r.requireNoRows(t, next)
	require.Empty(t, r.s.tables.files)
	for _, id := range slices.Concat(good, ends) {
		require.Empty(t, r.s.tables.slots[id].files)
	}
	r.drop(t, known, slices.Concat(good, ends))
}

// endEverywhere has every frame be the outermost one.
func endEverywhere(table *record.UnwindTable) {
	for i := range table.Rules[1:] {
		table.Rules[i+1] = record.UnwindRule{CFA: record.CFAEnd}
	}
}

// A list that is behind says that a process maps something else where it maps a file now.
// Nobody but itself is walked by that.
func TestListTeachesNobody(t *testing.T) {
	r := newRowsTarget(t)
	needFileNames(t, r.s)
	honest := r.start(t)
	loadRows(t, r.s, honest.pid)
	r.requireWhole(t, r.start(t))
	evil := r.start(t)
	tables := loadRowsAs(t, r.s, evil.pid, endEverywhere)
	for _, id := range tables { // its list has them, its files have not
		for _, file := range r.s.tables.slots[id].files {
			require.NoError(t, r.s.forgetFileRows(file, id))
		}
	}
	for range 100 {
		_, frames := r.outcome(t, evil)
		require.Equal(t, 1, frames)
	}
	r.requireWhole(t, r.start(t))
}

// A list holds as long as the process maps as much code as it did then. When it does not,
// the files are looked up in the kernel's tree, whatever the list says.
func TestChangedMappings(t *testing.T) {
	r := newRowsTarget(t)
	needFileNames(t, r.s)
	known := r.start(t)
	loadRows(t, r.s, known.pid)
	r.requireWhole(t, known)
	next := r.start(t)
	id, pages := identify(t, r.s, next.pid), execPages(t, next.pid)
	another := []record.UnwindMapping{{Start: 0x10000, Limit: 0x11000}}
	for _, then := range []uint64{pages - 1, pages + 1, 0} {
		require.NoError(t, r.s.SetUnwindMappings(id, another, then))
		r.requireWhole(t, next)
	}
	require.NoError(t, r.s.SetUnwindMappings(id, another, pages))
	r.requireNoRows(t, next)
	require.NoError(t, r.s.SetUnwindMappings(id, nil, pages+1))
	r.requireWhole(t, next)
}

// A file is named as the kernel has it in mappings, however it was opened: what is no file
// cannot be, and a file that changes has another name.
func TestNameFile(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	needFileNames(t, s)
	require.NoError(t, s.Follow())
	text, err := os.ReadFile("/bin/cat")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cat")
	require.NoError(t, os.WriteFile(path, text, 0o755))
	name := func() record.FileKey {
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		key, err := s.NameFile(f)
		require.NoError(t, err)
		return key
	}
	first := name()
	require.Equal(t, first, name())
	executed, _ := execute(t, s, path)
	require.Equal(t, executed, first, "as at its exec")
	require.Eventually(t, func() bool {
		require.NoError(t, os.Chmod(path, 0o700))
		return name() != first
	}, time.Minute, time.Millisecond)
	pipe, _, err := os.Pipe()
	require.NoError(t, err)
	_, err = s.NameFile(pipe)
	require.Error(t, err)
	require.NoError(t, pipe.Close())
	_, err = s.NameFile(pipe)
	require.Error(t, err)
}
