//go:build linux

package executable

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

const (
	// hugeBytes is the size of a file that is nearly all holes.
	hugeBytes = 1 << 40
	// hugeReadBytes bounds what is read of it.
	hugeReadBytes = 128 << 10
)

// mapper maps the beginning of a file executable.
const mapper = target.Common + `
#include <fcntl.h>
int main(int argc, char **argv) {
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
	say(at); await();
}`

// mapped starts a program that maps a file, and returns the mapping.
func mapped(t *testing.T, path string) (*target.Program, procfs.Mapping) {
	t.Helper()
	p := target.Start(t, target.Compile(t, "p", mapper), path)
	var tp, at uint64
	p.Line(&tp, &at)
	for m, err := range (procfs.FS{}).Mappings(p.PID) {
		require.NoError(t, err)
		if m.Start == at {
			return p, m
		}
	}
	require.Fail(t, "not mapped", path)
	return nil, procfs.Mapping{}
}

func contentsOf(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// A file of 1 TiB costs what its headers and symbols do.
func TestHugeFile(t *testing.T) {
	for name, data := range map[string][]byte{
		"library": contentsOf(t, target.Library(t, target.DefineV1, "custom_labels_current_set", "-Wl,--build-id=0x0123")),
		"zeros":   nil,
		"magic":   []byte("\x7fELF\x02\x01\x01"),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "huge")
			require.NoError(t, os.WriteFile(path, data, 0o644))
			require.NoError(t, os.Truncate(path, hugeBytes))
			p, raw := mapped(t, path)
			c := newCache(t)
			m, err := c.Map(p.PID, Owner{}, &raw, nil)
			require.NoError(t, err)
			f := m.File
			require.NotEmpty(t, f.HTLHash())
			if name == "library" {
				require.Equal(t, "0123", f.BuildIDGNU())
				require.Len(t, f.facts.Plans, 1)
				require.NoError(t, f.facts.Plans[0].Err)
			}
			file, size, err := f.Open()
			require.NoError(t, err)
			defer file.Close()
			require.EqualValues(t, hugeBytes, size)
			read := counting{r: file}
			_, _ = ReadFacts(t.Context(), &read, size)
			require.Less(t, read.bytes, int64(hugeReadBytes))
		})
	}
}

// A file is rewritten and cut while it is read, again and again: each look at it
// ends, reads a bounded number of bytes, and the last one is right.
func TestFileChangesWhileRead(t *testing.T) {
	library := target.Library(t, target.DefineV1, "custom_labels_current_set")
	good := contentsOf(t, library)
	p, raw := mapped(t, library)
	cache := NewCache(Options{MaxFiles: 8, MaxDescriptors: 2})
	defer cache.Close()

	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { mangle(t, library, good, stop) })
	whole, damaged := 0, 0
	for looks := 0; looks < 2_000 || damaged == 0 && looks < 1_000_000; looks++ { // the writer may begin late
		f, err := cache.of(p.PID, Owner{}, raw)
		if err != nil || f.err != nil || len(f.facts.Plans) != 1 || f.facts.Plans[0].Err != nil {
			damaged++
		} else {
			whole++
		}
		require.LessOrEqual(t, cache.Len(), 8)
		require.LessOrEqual(t, cache.Descriptors(), 2)
	}
	close(stop)
	writer.Wait()
	t.Logf("%d whole, %d damaged", whole, damaged)
	require.NotZero(t, damaged)

	require.NoError(t, os.WriteFile(library, good, 0o644))
	f, err := NewCache(Options{MaxFiles: 8}).of(p.PID, Owner{}, raw)
	require.NoError(t, err)
	require.NoError(t, f.err)
	require.Len(t, f.facts.Plans, 1)
	require.NoError(t, f.facts.Plans[0].Err)
}

// mangle changes a file in place until it is stopped.
func mangle(t *testing.T, path string, good []byte, stop <-chan struct{}) {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return
		default:
		}
		switch r.IntN(3) {
		case 0:
			err = file.Truncate(int64(r.IntN(len(good))))
		case 1:
			_, err = file.WriteAt([]byte{byte(r.Uint32())}, int64(r.IntN(len(good))))
		default:
			_, err = file.WriteAt(good, 0)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// A file that would keep whoever reads it busy has no rows, which is counted.
func TestRowsFileTime(t *testing.T) {
	f := newRowsFake(t, nil)
	now := int64(0)
	f.cpuTime = func() int64 { now += int64(budget.MaxFileTime) + 1; return now }
	_, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	n := f.buildAll()
	require.NotZero(t, n)
	require.Empty(t, f.rec.tables)
	require.EqualValues(t, n, f.Stats().Failed)
}

// What is built ends with the context, whatever is left to read.
func TestRowsEndWithContext(t *testing.T) {
	f := newRowsFake(t, nil)
	_, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	ctx, cancel := context.WithCancel(t.Context())
	f.cpuTime = func() int64 { cancel(); return 0 }
	built, _ := f.buildNext(ctx, &buildTimes{}, &builder{})
	require.True(t, built)
	require.Empty(t, f.rec.tables)
	require.Zero(t, f.Stats().Failed)
}
