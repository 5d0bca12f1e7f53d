//go:build linux

package process

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

// TestVaddr compares addresses in running programs with the symbols of their files.
func TestVaddr(t *testing.T) {
	for name, flags := range map[string][]string{
		"PIE":                 {"-pie"},
		"not PIE":             {"-no-pie"},
		"static":              {"-static"},
		"static PIE":          {"-static-pie"},
		"shared segments":     {"-pie", "-Wl,-z,noseparate-code"},
		"not PIE, high":       {"-no-pie", "-Wl,-Ttext-segment=0x10000000"},
		"not PIE, one page":   {"-no-pie", "-Wl,-z,noseparate-code"},
		"PIE, other segments": {"-pie", "-Wl,-z,max-page-size=0x200000"},
	} {
		t.Run(name, func(t *testing.T) {
			path := compile(t, "p", target.Common+`int main(void) { say((void *)&main); await(); return 0; }`, flags...)
			p := start(t, path)
			var tp, addr uint64
			p.Line(&tp, &addr)
			table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
			info := loaded(t, table, p.exists()).Info()
			m := info.Mapping(addr)
			require.NotNil(t, m)
			require.Equal(t, path, m.Path)
			got, ok := m.Vaddr(addr)
			require.True(t, ok)
			require.Equal(t, symbolValue(t, path, "main"), got)
		})
	}
}

func symbolValue(t *testing.T, path, name string) uint64 {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	e, err := elf.NewFile(file)
	require.NoError(t, err)
	symbols, err := e.Symbols()
	require.NoError(t, err)
	for _, s := range symbols {
		if s.Name == name {
			return s.Value
		}
	}
	require.Fail(t, "no such symbol", name)
	return 0
}
