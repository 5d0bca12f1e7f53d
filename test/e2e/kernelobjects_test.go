//go:build linux && (amd64 || arm64)

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	bpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The kernel frees BPF objects some time after the last reference has gone.
const freeTimeout = 2 * time.Minute

// settledFor is for how long a process holds the same when nothing is on its way.
const settledFor = time.Second

// kernelObjects is what a process holds open.
type kernelObjects struct {
	programs    []ebpf.ProgramID
	maps        []ebpf.MapID // without tables
	tables      []ebpf.MapID // of unwind rows, one for each file that has some
	links       []bpflink.ID
	perfEvents  int
	others      int // sockets, pipes, event polls ...
	files       int // executables are kept open, each once
	filesTwice  int
	descriptors int // all of these
}

// kernelObjectCounts is what can be compared between two pipelines of one process.
type kernelObjectCounts struct {
	programs, maps, tables, links, perfEvents, others, filesTwice int
}

func (k kernelObjects) counts() kernelObjectCounts {
	return kernelObjectCounts{len(k.programs), len(k.maps), len(k.tables), len(k.links), k.perfEvents, k.others, k.filesTwice}
}

// ownCounts are those that no program of the host changes by its start or its end.
func (k kernelObjects) ownCounts() kernelObjectCounts {
	counts := k.counts()
	counts.tables = 0
	counts.filesTwice = 0 // of the table of processes and, for a moment, of who looks names up
	return counts
}

func (k kernelObjects) String() string {
	return fmt.Sprintf("%d BPF programs, %d maps, %d tables of unwind rows, %d links, %d perf events, %d other descriptors, %d files",
		len(k.programs), len(k.maps), len(k.tables), len(k.links), k.perfEvents, k.others, k.files)
}

// kernelObjectsOf reads the descriptors of a process.
func kernelObjectsOf(t *testing.T, pid int) kernelObjects {
	t.Helper()
	var k kernelObjects
	seen := map[fileID]bool{}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	for _, e := range entries {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		if err != nil {
			continue // closed meanwhile, like the one of ReadDir
		}
		k.descriptors++
		switch {
		case target == "anon_inode:[perf_event]":
			k.perfEvents++
			continue
		case strings.HasPrefix(target, "/"):
			k.addFile(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()), seen)
			continue
		case !strings.HasPrefix(target, "anon_inode:bpf"):
			k.others++
			continue
		}
		info, err := os.ReadFile(filepath.Join(fmt.Sprintf("/proc/%d/fdinfo", pid), e.Name()))
		if err != nil {
			continue
		}
		switch id := func(field string) (n uint32, ok bool) {
			for line := range strings.Lines(string(info)) {
				if _, err := fmt.Sscanf(line, field+": %v", &n); err == nil {
					return n, true
				}
			}
			return 0, false
		}; {
		case strings.Contains(target, "link"):
			n, ok := id("link_id")
			require.True(t, ok, target)
			k.links = append(k.links, bpflink.ID(n))
		case strings.Contains(target, "prog"):
			n, ok := id("prog_id")
			require.True(t, ok, target)
			k.programs = append(k.programs, ebpf.ProgramID(n))
		case strings.Contains(target, "map"):
			n, ok := id("map_id")
			require.True(t, ok, target)
			flags, ok := id("map_flags")
			require.True(t, ok, target)
			if flags&unix.BPF_F_INNER_MAP != 0 {
				k.tables = append(k.tables, ebpf.MapID(n))
			} else {
				k.maps = append(k.maps, ebpf.MapID(n))
			}
		}
	}
	return k
}

type fileID struct{ dev, ino uint64 }

func (k *kernelObjects) addFile(path string, seen map[fileID]bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	id := fileID{st.Dev, st.Ino}
	k.files++
	if seen[id] {
		k.filesTwice++
	}
	seen[id] = true
}

// settledKernelObjectsOf waits until counts of what a process holds have been the same for a while.
func settledKernelObjectsOf(t *testing.T, pid int, counts func(kernelObjects) kernelObjectCounts) kernelObjects {
	t.Helper()
	deadline := time.Now().Add(freeTimeout)
	got, since := kernelObjectsOf(t, pid), time.Now()
	for time.Since(since) < settledFor {
		require.True(t, time.Now().Before(deadline), "what it holds changes all the time; now %v", got)
		time.Sleep(50 * time.Millisecond)
		if now := kernelObjectsOf(t, pid); counts(now) != counts(got) {
			got, since = now, time.Now()
		}
	}
	return got
}

// requireSame waits until a process holds what it held before: files may be open
// for a moment, connections may be replaced.
func requireSame(t *testing.T, pid int, want kernelObjectCounts) kernelObjects {
	t.Helper()
	deadline := time.Now().Add(freeTimeout)
	got := kernelObjectsOf(t, pid)
	for got.counts() != want && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		got = kernelObjectsOf(t, pid)
	}
	require.Equal(t, want, got.counts())
	return got
}

// requireGone waits until the kernel has freed all BPF objects.
func (k kernelObjects) requireGone(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(freeTimeout)
	left := k.leftover()
	for left != "" && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		left = k.leftover()
	}
	require.Empty(t, left, "still in the kernel")
}

// leftover names an object that the kernel still has.
func (k kernelObjects) leftover() string {
	for _, id := range k.programs {
		if p, err := ebpf.NewProgramFromID(id); !errors.Is(err, fs.ErrNotExist) {
			p.Close()
			return fmt.Sprintf("program %d", id)
		}
	}
	for _, id := range slices.Concat(k.maps, k.tables) {
		if m, err := ebpf.NewMapFromID(id); !errors.Is(err, fs.ErrNotExist) {
			m.Close()
			return fmt.Sprintf("map %d", id)
		}
	}
	for _, id := range k.links {
		if l, err := bpflink.NewFromID(id); !errors.Is(err, fs.ErrNotExist) {
			if l != nil {
				l.Close()
			}
			return fmt.Sprintf("link %d", id)
		}
	}
	return ""
}
