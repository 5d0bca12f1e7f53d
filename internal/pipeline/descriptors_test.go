//go:build linux && (amd64 || arm64)

package pipeline

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// What is kept open leaves a reserve to the collector, and room for another receiver.
func TestShareDescriptors(t *testing.T) {
	for name, test := range map[string]struct {
		limit         uint64
		open, cpus    int
		files, tables int
		warns         bool
	}{
		"64: nothing is left":        {limit: 64, open: 40, cpus: 2, warns: true},
		"128":                        {limit: 128, open: 30, cpus: 1, files: 0, tables: 3, warns: true},
		"256":                        {limit: 256, open: 60, cpus: 2, files: 4, tables: 15, warns: true},
		"512: half is the reserve":   {limit: 512, open: 60, cpus: 2, files: 20, tables: 63, warns: true},
		"1024: 256 are":              {limit: 1024, open: 60, cpus: 2, files: 84, tables: 255, warns: true},
		"enough":                     {limit: 2906, open: 60, cpus: 2, files: 256, tables: 1024},
		"not quite":                  {limit: 2904, open: 60, cpus: 2, files: 256, tables: 1023, warns: true},
		"many CPUs":                  {limit: 2906, open: 60, cpus: 512, files: 128, tables: 387, warns: true},
		"1<<20":                      {limit: 1 << 20, open: 60, cpus: 2, files: 256, tables: 8192},
		"infinity":                   {limit: unix.RLIM_INFINITY, open: 60, cpus: 2, files: 256, tables: 8192},
		"more open than the limit":   {limit: 256, open: 300, cpus: 2, warns: true},
		"far more open, and no room": {limit: 0, open: math.MaxInt32, cpus: 2, warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := shareDescriptors(test.limit, test.open, test.cpus)
			require.Equal(t, descriptors{test.limit, test.open, test.files, test.tables}, d)
			core, said := observer.New(zap.InfoLevel)
			o := Options{Logger: zap.New(core)}
			d.warn(&o)
			if !test.warns {
				require.Zero(t, said.Len())
				return
			}
			require.Equal(t, 1, said.Len())
			line := said.All()[0]
			require.Equal(t, zap.WarnLevel, line.Level)
			require.Equal(t, map[string]any{
				"limit": test.limit, "open": int64(test.open), "unwind_tables": int64(test.tables), "kept_files": int64(test.files),
			}, line.ContextMap())
			for _, remedy := range []string{"LimitNOFILE=", "ulimit -n", "docker --ulimit nofile="} {
				require.Contains(t, line.Message, remedy)
			}
			o.Unwind.FramePointersOnly = true
			d.warn(&o)
			require.Equal(t, 2, said.Len(), "names need files")
			o.Symbols.Skip = true
			d.warn(&o)
			require.Equal(t, 2, said.Len(), "nothing is kept open")
		})
	}
}

// Two pipelines that count the same as open are within what is left, reserve aside.
func TestDescriptorsOfTwo(t *testing.T) {
	const cpus, open = 2, 60
	for limit := uint64(0); limit < 40000; limit += 7 {
		d := shareDescriptors(limit, open, cpus)
		held := 2 * (d.files + d.tables)
		if held > 0 {
			require.LessOrEqual(t, uint64(held+open)+min(limit/2, reservedDescriptors), limit)
		}
	}
}

// A pipeline goes by the limit as it is, says so, and opens no more at its start than was left for that.
func TestDescriptorsOfPipeline(t *testing.T) {
	testutil.RequireBPF(t)
	core, said := observer.New(zap.WarnLevel)
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 400
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
	before := countDescriptors(t, "")
	o := Options{Logger: zap.New(core), Next: Consumers{Profiles: consumertest.NewNop()}}
	o.OffCPU.Threshold = 0.01
	p, err := New(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Shutdown(t.Context())) }()
	d := p.descriptors
	require.EqualValues(t, 400, d.limit)
	require.Greater(t, d.open, before+10, "with the sampler's")
	require.LessOrEqual(t, d.open, countDescriptors(t, ""))
	require.Equal(t, 1, said.FilterMessageSnippet("limit of open files").Len())
	options := p.tableOptions(nil, procfs.FS{}, nil)
	require.Positive(t, d.files)
	require.Equal(t, [2]int{d.files, d.tables}, [2]int{options.MaxDescriptors, options.MaxRowTables})
	p.descriptors.files, p.descriptors.tables = 0, 0
	options = p.tableOptions(nil, procfs.FS{}, nil)
	require.Equal(t, [2]int{-1, -1}, [2]int{options.MaxDescriptors, options.MaxRowTables}, "0 would be the default")
}

// What is opened by Start and beside the sampler is no more than is left for it.
func TestStartDescriptors(t *testing.T) {
	testutil.RequireBPF(t)
	o := Options{Next: Consumers{Profiles: consumertest.NewNop(), Metrics: consumertest.NewNop()}}
	o.OffCPU.Threshold = 0.01
	o.Unwind.FramePointersOnly = true // no tables
	before := countDescriptors(t, "/")
	p, err := New(o)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	on, err := bpf.HostCPUs()
	require.NoError(t, err)
	opened := countDescriptors(t, "") - countDescriptors(t, "/") + before - p.descriptors.open
	t.Log(opened, "opened")
	require.LessOrEqual(t, opened, startDescriptors+on.Online*bpf.CPUDescriptors)
	require.Greater(t, opened, on.Online*bpf.CPUDescriptors)
	require.NoError(t, p.Shutdown(t.Context()))
}

// countDescriptors counts what this process has open whose name begins so; files have paths.
func countDescriptors(t *testing.T, prefix string) (n int) {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, e := range entries {
		if name, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}
