//go:build linux && (amd64 || arm64)

package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
)

// cpuTime is the time that all threads of a process have run, to the nanosecond
// (/proc/PID/stat counts ticks). Threads that have ended are missing: Go's do not.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	require.NoError(t, err)
	total := time.Duration(0)
	for _, thread := range threads {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, thread.Name()))
		require.NoError(t, err)
		ns, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		require.NoError(t, err)
		total += time.Duration(ns)
	}
	return total
}

// A residence is the resident memory of a process in bytes.
type residence struct {
	// total has each page once, where the resident set size has the data of ring buffers
	// twice: it is mapped twice in a row.
	total int64
	// anonymous is what it has written: heap, stacks, tables.
	anonymous int64
	// buffers is kernel buffers that are mapped into the process: the ring buffers and
	// the perf events'.
	buffers int64
	// maps is the part of buffers that is BPF maps: ring buffers.
	maps int64
}

func readResidence(t *testing.T, pid int) residence {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	require.NoError(t, err)
	defer f.Close()
	var r residence
	buffer, bpfMap := false, false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if !strings.HasSuffix(fields[0], ":") { // the head of a mapping
			buffer = strings.Contains(lines.Text(), "anon_inode:")
			bpfMap = strings.Contains(lines.Text(), "anon_inode:bpf-map")
			continue
		}
		if len(fields) != 3 {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		require.NoError(t, err)
		switch fields[0] {
		case "Pss:":
			r.total += kib << 10
			if buffer {
				r.buffers += kib << 10
			}
			if bpfMap {
				r.maps += kib << 10
			}
		case "Anonymous:":
			r.anonymous += kib << 10
		}
	}
	require.NoError(t, lines.Err())
	return r
}

// mapBytes is the kernel memory of all BPF maps of a process: those that it has open, and
// those within maps, which it has closed, by what their names begin with.
func mapBytes(t *testing.T, pid int, within string) int64 {
	t.Helper()
	open := openMaps(t, pid)
	total := int64(0)
	for id, err := ebpf.MapGetNextID(0); !errors.Is(err, os.ErrNotExist); id, err = ebpf.MapGetNextID(id) {
		require.NoError(t, err)
		m, err := ebpf.NewMapFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue // gone meanwhile
		}
		require.NoError(t, err)
		info, err := m.Info()
		require.NoError(t, m.Close())
		require.NoError(t, err)
		if open[id] || strings.HasPrefix(info.Name, within) {
			bytes, known := info.Memlock()
			require.True(t, known, "memory of map %d, %s (%v)", id, info.Name, info.Type)
			total += int64(bytes)
		}
	}
	return total
}

// openMaps has the BPF maps that a process has open.
func openMaps(t *testing.T, pid int) map[ebpf.MapID]bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fdinfo", pid)
	fds, err := os.ReadDir(dir)
	require.NoError(t, err)
	open := map[ebpf.MapID]bool{}
	for _, fd := range fds {
		b, err := os.ReadFile(dir + "/" + fd.Name())
		if os.IsNotExist(err) {
			continue // closed meanwhile
		}
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			if text, found := strings.CutPrefix(line, "map_id:"); found {
				id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
				require.NoError(t, err)
				open[ebpf.MapID(id)] = true
			}
		}
	}
	return open
}
