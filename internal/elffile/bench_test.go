package elffile_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

func BenchmarkNew(b *testing.B) {
	for _, path := range systemFiles(b)[:2] {
		file, err := os.Open(path)
		require.NoError(b, err)
		info, err := file.Stat()
		require.NoError(b, err)
		b.Run(info.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := elffile.New(file, info.Size())
				require.NoError(b, err)
				_, _ = f.BuildID()
			}
		})
		require.NoError(b, file.Close())
	}
}

func BenchmarkFunctions(b *testing.B) {
	for _, path := range systemFiles(b) {
		file, err := os.Open(path)
		require.NoError(b, err)
		info, err := file.Stat()
		require.NoError(b, err)
		b.Run(info.Name(), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				f, err := elffile.New(file, info.Size())
				require.NoError(b, err)
				n = 0
				require.NoError(b, f.Functions(func(elffile.Function) bool { n++; return true }))
			}
			b.ReportMetric(float64(n), "functions")
		})
		require.NoError(b, file.Close())
	}
}
