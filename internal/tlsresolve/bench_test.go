package tlsresolve_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// counter counts what is read of a file.
type counter struct {
	r            io.ReaderAt
	reads, bytes int64
}

func (c *counter) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	c.bytes += int64(len(p))
	return c.r.ReadAt(p, off)
}

func openCounted(tb testing.TB, path string) (*counter, int64) {
	tb.Helper()
	file, err := os.Open(path)
	require.NoError(tb, err)
	tb.Cleanup(func() { file.Close() })
	info, err := file.Stat()
	require.NoError(tb, err)
	return &counter{r: file}, info.Size()
}

// benchmarkFiles are what a host runs: files with the variable and without.
func benchmarkFiles(tb testing.TB) map[string]string {
	self, err := os.Executable()
	require.NoError(tb, err)
	return map[string]string{
		"library":    corpus.Library(tb, corpus.GCC),
		"executable": corpus.Build(tb, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-rdynamic"),
		"static":     corpus.Build(tb, "host", corpus.GCC, "host.c", "variable.c", "-DLINKED", "-static"),
		"none-libc":  "/lib/x86_64-linux-gnu/libc.so.6",
		"none-go":    self,
	}
}

func BenchmarkNewPlan(b *testing.B) {
	for name, path := range benchmarkFiles(b) {
		b.Run(name, func(b *testing.B) {
			r, size := openCounted(b, path)
			b.ReportAllocs()
			for b.Loop() {
				f, err := elffile.New(r, size)
				require.NoError(b, err)
				for _, symbol := range []string{symbol, "custom_labels_thread_local_data", "otel_thread_ctx_v1"} {
					_, _ = tlsresolve.NewPlan(f, symbol)
				}
			}
			b.ReportMetric(float64(r.bytes)/float64(b.N), "bytes-read/op")
			b.ReportMetric(float64(r.reads)/float64(b.N), "reads/op")
		})
	}
}

func BenchmarkResolve(b *testing.B) {
	f := open(b, corpus.Library(b, corpus.GCC, "-mtls-dialect=gnu2"))
	plan, err := tlsresolve.NewPlan(f, symbol)
	require.NoError(b, err)
	mem := fakemem.Anywhere(make([]byte, 4096))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = plan.Resolve(mem, loadBias, tlsresolve.Target{Machine: f.Machine, Libc: tlsresolve.Glibc})
	}
}

// Reading stays small: never the file as a whole, and next to nothing for files
// that have no labels.
func TestBytesRead(t *testing.T) {
	limits := map[string]int64{"library": 8 << 10, "executable": 8 << 10, "static": 128 << 10, "none-libc": 8 << 10, "none-go": 4 << 10}
	for name, path := range benchmarkFiles(t) {
		r, size := openCounted(t, path)
		f, err := elffile.New(r, size)
		require.NoError(t, err)
		_, err = tlsresolve.NewPlan(f, symbol)
		if name[:4] == "none" {
			require.ErrorIs(t, err, tlsresolve.ErrNoSymbol, name)
		} else {
			require.NoError(t, err, name)
		}
		require.LessOrEqual(t, r.bytes, limits[name], name)
		t.Logf("%s: %d of %d bytes in %d reads", name, r.bytes, size, r.reads)
	}
}
