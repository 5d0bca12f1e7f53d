//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// Who executes another program while a batch is built still has its files and its perf map read in its own name, and
// not in root's. Of whom nothing is known, nothing is read.
func TestNamesOfReplaced(t *testing.T) {
	d, proc := testAggregator(t, func(*Options) {}, nil)
	rec := readProcess(t, d, proc, 2, "/bin/p", "")
	d.add(rec, timeOff{})
	p, held := d.table.Process(d.sample.Process)
	require.True(t, held)

	var asked []uint32
	ask := symbol.CacheOptions{Busy: func(uid uint32) bool { asked = append(asked, uid); return true }}
	r := newResolver(&symbolizer{
		table: d.table, wrote: map[*process.Info]generated{},
		files: symbol.NewCache[procfs.FileID](ask), maps: symbol.NewPerfMaps[uint64](ask),
	})
	r.processes[p.Handle()] = p
	info := *p.Info()
	file := executable.NewFile(procfs.FileID{Inode: 1}, "/bin/p", executable.Facts{}, nil)
	const code, memory = 0x1000, 0x3000
	info.Mappings = []executable.Mapping{
		{Start: code, Limit: code + 0x1000, Path: "/bin/p", File: file, Biased: true},
		{Start: memory, Limit: memory + 0x1000},
	}
	r.mapped[p.Handle()] = &info

	replaced := rec.Process
	replaced.ExecID++
	d.table.HandleEvent(record.Event{Kind: record.EventExec, Process: replaced, PID: 2, TimeNs: monotonicNow()})
	require.False(t, p.Info().Loaded, "it was read too late")
	names := func() {
		r.Expect(p.Handle(), 0, []uint64{code})
		for _, addr := range []uint64{code, memory} {
			require.NotNil(t, r.Frame(p.Handle(), 0, profile.User, addr).Mapping)
		}
	}
	names()
	const user = 10
	require.Len(t, asked, 3, "an address that is expected, the file, and the perf map")
	for _, uid := range asked {
		require.EqualValues(t, user, uid)
	}
	require.Equal(t, ownerOf(&info), fileSource{info: &info, process: p}.Owner())

	asked, info.Loaded = nil, false
	names()
	require.Empty(t, asked)
}
