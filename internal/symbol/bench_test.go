package symbol

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// BenchmarkLoad reads the functions of a file, CUSTOM_LABELS_BENCH_FILE or a Go program.
func BenchmarkLoad(b *testing.B) {
	path := benchFile(b)
	var c *Cache[int]
	for b.Loop() {
		c = NewCache[int](CacheOptions{Wait: time.Minute})
		c.Lookup(nil, 1, &opener{path: path}, 0)
	}
	b.ReportMetric(float64(c.Stats().Bytes), "bytes")
}

// BenchmarkGoFrames looks up addresses of a Go program that were not asked for before.
func BenchmarkGoFrames(b *testing.B) {
	path := benchFile(b)
	data, err := os.ReadFile(path)
	require.NoError(b, err)
	f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(b, err)
	table, err := gopclntab.Find(f)
	require.NoError(b, err)
	o := &opener{path: path}
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	defer c.CloseFiles()
	c.Lookup(nil, 1, o, 0)
	pc := table.Start
	var to []Frame
	for b.Loop() {
		if pc += 10007; pc >= table.Limit { // all over the program
			pc -= table.Limit - table.Start
		}
		to, _ = c.Lookup(to[:0], 1, o, pc)
	}
}

func benchFile(b *testing.B) string {
	if path := os.Getenv("CUSTOM_LABELS_BENCH_FILE"); path != "" {
		return path
	}
	return testutil.BuildGoTables(b)[0]
}
