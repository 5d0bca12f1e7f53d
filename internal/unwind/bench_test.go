package unwind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

func BenchmarkNew(b *testing.B) {
	tools, err := exec.Command("go", "env", "GOTOOLDIR").Output()
	require.NoError(b, err)
	for _, pattern := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libLLVM*19*", "/usr/lib/x86_64-linux-musl/libc.so", strings.TrimSpace(string(tools)) + "/compile"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(b, err)
		require.NotEmpty(b, paths)
		b.Run(filepath.Base(paths[0]), func(b *testing.B) {
			file, err := os.Open(paths[0])
			require.NoError(b, err)
			defer file.Close()
			info, err := file.Stat()
			require.NoError(b, err)
			b.ReportAllocs()
			rows, bytes := 0, 0
			for b.Loop() {
				e, err := elffile.New(file, info.Size())
				require.NoError(b, err)
				made, err := unwind.New(e, unwind.Limits{})
				require.NoError(b, err)
				rows, bytes = len(made.Rows), made.Bytes()
			}
			b.ReportMetric(float64(rows), "rows")
			b.ReportMetric(float64(bytes), "table-bytes")
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	made := table(b, "/lib/x86_64-linux-gnu/libc.so.6")
	span, at := made.Limit()-made.Base, uint64(0)
	for b.Loop() {
		if _, ok := made.Lookup(made.Base + at); !ok {
			b.Fatal("outside")
		}
		at = (at + 7919) % span
	}
}
