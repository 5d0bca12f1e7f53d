//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"math/bits"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// ErrMapBytes says that Config.MaxMapBytes does not hold what has a fixed size.
var ErrMapBytes = errors.New("the limit of bytes of BPF maps is too low")

// minGrowingBytes is the least that is left for maps that grow with the processes.
const minGrowingBytes = 4 << 20

// What the kernel adds to the entries of a map.
const (
	hashEntryBytes  = 48 // struct htab_elem
	hashBucketBytes = 16 // struct bucket
	allocatorBytes  = 8  // bpf_mem_alloc: struct llist_node
	ringPages       = 3  // of a ring buffer, besides its data
)

// A mapShape is what the memory of a map follows from.
type mapShape struct {
	kind                ebpf.MapType
	key, value, entries uint32
	flags               uint32
}

func shapeOf(m *ebpf.MapSpec) mapShape {
	return mapShape{m.Type, m.KeySize, m.ValueSize, m.MaxEntries, m.Flags}
}

// grows reports whether memory is taken only as entries come.
func (m mapShape) grows() bool { return m.kind == ebpf.Hash && m.flags&unix.BPF_F_NO_PREALLOC != 0 }

// bytes is the most memory that the map takes, pages and a few hundred bytes of its
// head left out.
func (m mapShape) bytes(cpus int) int {
	key, value, entries := eights(m.key), eights(m.value), int(m.entries)
	switch m.kind {
	case ebpf.RingBuf:
		return entries + ringPages*os.Getpagesize()
	case ebpf.ArrayOfMaps:
		return 8 * entries
	case ebpf.PerCPUArray:
		return (8 + value*cpus) * entries
	case ebpf.Hash, ebpf.LRUHash:
		buckets := hashBucketBytes << bits.Len32(max(m.entries, 1)-1)
		if m.grows() {
			return buckets + entries*slab(hashEntryBytes+allocatorBytes+key+value)
		}
		return buckets + (entries+cpus)*(hashEntryBytes+key+value)
	}
	return value * entries
}

func eights(n uint32) int { return int(n+7) &^ 7 }

// slab is what the kernel's allocator takes for n bytes: a power of two, or 96 or 192.
func slab(n int) int {
	switch {
	case n > 64 && n <= 96:
		return 96
	case n > 128 && n <= 192:
		return 192
	}
	return 1 << bits.Len(uint(max(n, 8)-1))
}

// mapsBytes is the most memory that the maps of an object take, but for those named.
// What no program uses is not created.
func mapsBytes[V any](spec *ebpf.CollectionSpec, cpus int, but map[string]V) (sum int) {
	counted := map[string]bool{}
	for _, program := range spec.Programs {
		for i := range program.Instructions {
			in := &program.Instructions[i]
			name := in.Reference()
			if m := spec.Maps[name]; m != nil && in.IsLoadFromMap() && !counted[name] {
				counted[name] = true
				if _, not := but[name]; !not {
					sum += shapeOf(m).bytes(cpus)
				}
			}
		}
	}
	return sum
}

// growing are the maps whose size follows from Config.MaxMapBytes.
func growing() map[string]bool {
	return map[string]bool{profilerMapProcesses: true, profilerMapLabelSources: true, profilerMapUnwindMappings: true}
}

// sizeMaps gives the maps that grow with the processes what Config.MaxMapBytes leaves
// beside the others, and beside what is set aside for unwind tables and OffCPU.
func (s *Sampler) sizeMaps(spec *ebpf.CollectionSpec) error {
	c := &s.config
	processes, sources, mappings := spec.Maps[profilerMapProcesses], spec.Maps[profilerMapLabelSources], spec.Maps[profilerMapUnwindMappings]
	processes.MaxEntries = lowered(c.MaxProcesses, defaultMaxProcesses)
	sources.MaxEntries = processes.MaxEntries
	if s.kernel.older { // they take their memory from the start
		sources.MaxEntries = min(sources.MaxEntries, olderMaxSources)
		mappings.MaxEntries = olderMaxChunks
	}
	if c.FramePointersOnly {
		mappings.MaxEntries, spec.Maps[profilerMapFileRows].MaxEntries = 1, 1
		spec.Maps[profilerMapRuntimes].MaxEntries = 1
	}
	fixed := mapsBytes(spec, s.cpus.Possible, growing())
	contexts, err := contextsBytes(s.cpus.Possible)
	if err != nil {
		return err
	}
	fixed += contexts
	if c.OffCPURingBytes > 0 {
		off, err := s.kernel.offCPUBytes(c.OffCPURingBytes, s.cpus)
		if err != nil {
			return err
		}
		fixed += off
	}
	if c.MaxMapBytes == 0 {
		return nil
	}
	room := c.MaxMapBytes - fixed - c.MaxTableBytes
	if room < minGrowingBytes {
		return fmt.Errorf("%w: %d for all, of which unwind tables may take %d, ring buffers and what has a fixed size %d, and at least %d must be left for what grows with the processes",
			ErrMapBytes, c.MaxMapBytes, c.MaxTableBytes, fixed, minGrowingBytes)
	}
	ofProcesses := func() int {
		return shapeOf(processes).bytes(s.cpus.Possible) + shapeOf(sources).bytes(s.cpus.Possible)
	}
	for ofProcesses() > room/2 { // not all processes have labels
		if sources.MaxEntries > processes.MaxEntries/2 {
			sources.MaxEntries /= 2
		} else {
			processes.MaxEntries /= 2
		}
	}
	for shapeOf(mappings).bytes(s.cpus.Possible) > room-ofProcesses() {
		mappings.MaxEntries /= 2
	}
	return nil
}

func contextsBytes(cpus int) (int, error) {
	spec, err := loadContexts()
	if err != nil {
		return 0, fmt.Errorf("read program: %w", err)
	}
	return mapsBytes(spec, cpus, (&olderMaps{}).ofContexts()), nil
}

func (k *kernel) offCPUBytes(ringBytes int, cpus CPUs) (int, error) {
	spec, err := k.loadOffCPU()
	if err != nil {
		return 0, fmt.Errorf("read programs: %w", err)
	}
	config := OffCPUConfig{RingBufferBytes: ringBytes}
	config.sizeMaps(spec, cpus.Room)
	spec.Maps[offcpuMapUsers].MaxEntries = userEntries(cpus.Possible)
	return mapsBytes(spec, cpus.Possible, (&olderMaps{}).ofOffCPU()), nil
}

// MapBytes returns the kernel memory that the maps of the sampler take, those of OffCPU
// and the unwind tables included. Kernels before 6.4 do not tell what maps that grow take;
// there it is what they may take.
func (s *Sampler) MapBytes() int {
	s.slotsMu.Lock()
	sum := s.fixedBytes + s.tables.bytes
	s.slotsMu.Unlock()
	for _, m := range []*ebpf.Map{s.objs.Processes, s.objs.LabelSources, s.objs.UnwindMappings} {
		sum += memlock(m)
	}
	return sum
}

// memlock is what the kernel says of the memory of a map; 0 if it does not.
func memlock(m *ebpf.Map) int {
	info, err := m.Info()
	if err != nil {
		return 0
	}
	bytes, _ := info.Memlock()
	return int(bytes)
}
