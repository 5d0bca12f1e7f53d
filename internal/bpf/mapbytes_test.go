//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// mapsLimit is the default of the receiver.
const mapsLimit = 128 << 20

// The maps take no more than the limit, by their kernel's own count, when all that grow
// are full and the unwind tables take what is set aside for them.
func TestMapBytesLimit(t *testing.T) {
	const tables = 32 << 20
	s := newSampler(t, Config{
		SamplesPerSecond: 19, RingBufferBytes: 8 << 20, OffCPURingBytes: 4 << 20, MaxMapBytes: mapsLimit, MaxTableBytes: tables,
	})
	off, err := s.OffCPU(OffCPUConfig{Threshold: 1, RingBufferBytes: 4 << 20})
	require.NoError(t, err)
	defer off.Close()
	most := s.fixedBytes + tables
	for _, m := range []*ebpf.Map{s.objs.Processes, s.objs.LabelSources, s.objs.UnwindMappings} {
		info, err := m.Info()
		require.NoError(t, err)
		most += mapShape{m.Type(), m.KeySize(), m.ValueSize(), m.MaxEntries(), info.Flags}.bytes(s.cpus.Possible)
	}
	require.LessOrEqual(t, most, mapsLimit)
	if !s.kernel.older {
		require.Greater(t, most, mapsLimit/2, "the maps use what they are given")
	}
	require.Greater(t, s.fixedBytes, 12<<20, "with the ring buffers")
	require.Less(t, s.MapBytes(), most)
}

// Of maps that do not grow, the size is what the kernel says, where it does (6.4 and newer).
func TestMapBytesEstimate(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: 1 << 20})
	for _, m := range []*ebpf.Map{s.objs.Samples, s.objs.Scratches, s.objs.Counts, s.objs.UnwindTables} {
		info, err := m.Info()
		require.NoError(t, err)
		told, ok := info.Memlock()
		if !ok || m.Type() == ebpf.RingBuf && told < 1<<20 {
			continue // an older kernel
		}
		computed := mapShape{m.Type(), m.KeySize(), m.ValueSize(), m.MaxEntries(), info.Flags}.bytes(s.cpus.Possible)
		require.InDelta(t, told, computed, float64(max(3*os.Getpagesize(), int(told)/10)), "%s", m)
	}
}

// Elements that are made one by one, or once for each CPU, take no more than is computed,
// by the kernel's own count.
func TestMapBytesOfElements(t *testing.T) {
	testutil.RequireBPF(t)
	const entries = 4000
	cpus, err := HostCPUs()
	require.NoError(t, err)
	for _, shape := range []mapShape{
		{kind: ebpf.Hash, key: 24, value: 168, entries: entries, flags: unix.BPF_F_NO_PREALLOC},
		{kind: ebpf.PerCPUArray, key: 4, value: 112, entries: entries},
	} {
		m, err := ebpf.NewMap(&ebpf.MapSpec{
			Type: shape.kind, KeySize: shape.key, ValueSize: shape.value, MaxEntries: entries, Flags: shape.flags,
		})
		require.NoError(t, err)
		defer m.Close()
		key, value := make([]byte, shape.key), make([]byte, shape.value)
		for i := range uint32(entries) {
			binary.NativeEndian.PutUint32(key, i)
			if shape.kind == ebpf.Hash {
				require.NoError(t, m.Put(key, value))
			}
		}
		info, err := m.Info()
		require.NoError(t, err)
		told, ok := info.Memlock()
		require.True(t, ok, "the kernel tells what a map takes")
		require.LessOrEqual(t, told, uint64(shape.bytes(cpus.Possible)+3*os.Getpagesize()), "%v", shape.kind)
		require.Greater(t, told, uint64(shape.bytes(cpus.Possible)/2), "%v", shape.kind)
	}
}

// Whatever the limit is, all maps together stay below, or it is an error.
func TestMapBytesOfAnyLimit(t *testing.T) {
	testMapBytesOfAnyLimit(t, kernel{})
	testMapBytesOfAnyLimit(t, kernel{older: true})
}

func testMapBytesOfAnyLimit(t *testing.T, k kernel) {
	t.Helper()
	const ring, offCPURing, tables = 1 << 20, 4 << 20, 32 << 20
	cpus := CPUs{Possible: 64, Room: 4}
	off, err := k.offCPUBytes(offCPURing, cpus)
	require.NoError(t, err)
	contexts, err := contextsBytes(cpus.Possible)
	require.NoError(t, err)
	fits := 0
	for limit := 16 << 20; limit < 128<<20; limit += 1<<20 - 4096 {
		s := &Sampler{cpus: cpus, kernel: k, config: Config{
			RingBufferBytes: ring, OffCPURingBytes: offCPURing, MaxMapBytes: limit, MaxTableBytes: tables,
		}}
		spec, err := k.loadProfiler()
		require.NoError(t, err)
		spec.Maps[profilerMapSamples].MaxEntries = ring
		rest := tables + off + contexts + mapsBytes(spec, cpus.Possible, growing())
		err = s.sizeMaps(spec)
		if limit-rest < minGrowingBytes {
			require.ErrorIs(t, err, ErrMapBytes)
			continue
		}
		require.NoError(t, err)
		for name := range growing() {
			rest += shapeOf(spec.Maps[name]).bytes(cpus.Possible)
		}
		require.LessOrEqual(t, rest, limit)
		fits++
	}
	require.NotZero(t, fits)
}

// What maps take for each CPU is within what the receiver reckons with.
func TestMapBytesOfCPUs(t *testing.T) {
	for _, k := range []kernel{{}, {older: true}} {
		for object, bytes := range map[string]func(CPUs) int{
			"samples": func(c CPUs) int {
				spec, err := k.loadProfiler()
				require.NoError(t, err)
				spec.Maps[profilerMapScratches].MaxEntries = uint32(c.Room)
				spec.Maps[profilerMapUsers].MaxEntries = userEntries(c.Possible)
				return mapsBytes(spec, c.Possible, growing())
			},
			"switches": func(c CPUs) int {
				bytes, err := k.offCPUBytes(1<<20, c)
				require.NoError(t, err)
				return bytes
			},
		} {
			least := bytes(CPUs{Possible: 1024, Room: 1})
			require.LessOrEqual(t, least-bytes(CPUs{Possible: 16, Room: 1}), (1024-16)*PossibleCPUBytes, object)
			room := bytes(CPUs{Possible: 1024, Room: 2}) - least
			require.LessOrEqual(t, room, RoomCPUBytes, object)
			require.Greater(t, room, RoomCPUBytes/2, object)
		}
	}
}

// A limit that does not hold the ring buffer and the tables is an error that says so.
func TestMapBytesTooLow(t *testing.T) {
	testutil.RequireBPF(t)
	_, err := New(Config{SamplesPerSecond: 19, RingBufferBytes: 8 << 20, MaxMapBytes: 17 << 20, MaxTableBytes: 8 << 20})
	require.ErrorIs(t, err, ErrMapBytes)
	require.Contains(t, err.Error(), "unwind tables may take 8388608")
}

// When there is no room for the mappings of a process, it has none rather than what was
// true before, and the others keep theirs.
func TestMappingsWithoutRoom(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 19, RingBufferBytes: MinRingBufferBytes, MaxMapBytes: 9 << 20})
	list := make([]record.UnwindMapping, record.MaxUnwindMappings)
	set, failed := 0, 0
	for pid := uint32(1); failed == 0; pid++ {
		require.Less(t, pid, uint32(10_000))
		if err := s.SetUnwindMappings(record.ProcessID{TGID: pid, StartNs: 1}, list, 0); err != nil {
			require.True(t, errors.Is(err, ebpf.ErrKeyExist) || strings.Contains(err.Error(), "argument list too long"), "%v", err)
			failed++
			continue
		}
		set++
	}
	require.NotZero(t, set)
	require.LessOrEqual(t, s.MapBytes(), 8<<20)
	first := record.ProcessID{TGID: 1, StartNs: 1}
	require.Error(t, s.SetUnwindMappings(first, list, 0))
	var known record.ProcessEntry
	require.ErrorIs(t, s.objs.Processes.Lookup(&first, &known), ebpf.ErrKeyNotExist)
	for pid := uint32(2); pid <= uint32(set); pid++ {
		require.NoError(t, s.objs.Processes.Lookup(record.ProcessID{TGID: pid, StartNs: 1}, &known))
	}
	// It has left room, in which it finds its place again.
	require.NoError(t, s.SetUnwindMappings(first, list[:1], 0))
}
