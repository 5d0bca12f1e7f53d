//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Frames are followed up to the last word that is mapped, across pages; and those of one
// process are not those of another that was sampled before on the same CPU, with its stack
// at the same addresses.
func TestLinkedFrames(t *testing.T) {
	const samples = 100
	program := buildStacks(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	type frames struct {
		first uint64
		links int
	}
	want := map[uint32]frames{}
	for kind, f := range map[string]frames{"many_links": {0x10000, 120}, "few_links": {0x20000, 4}, "other_links": {0x30000, 4}} {
		pid, _ := startStacks(t, program, kind)
		want[pid] = f
		pin(t, pid, 0)
		require.NoError(t, s.SetUnwindMappings(identify(t, s, pid), nil, execPages(t, pid)))
	}
	require.NoError(t, s.Start())
	seen := map[uint32]int{}
	readUntil(t, s, func(r *Record) bool {
		f, ours := want[r.PID]
		if !ours || seen[r.PID] == 0 && (len(r.UserFrames) == 1 || r.UserFrames[1] != f.first) {
			return false // it has not come that far
		}
		seen[r.PID]++
		require.Equal(t, record.OutcomePresent.String(), r.UserStack.String())
		require.Len(t, r.UserFrames, 1+f.links)
		for i, addr := range r.UserFrames[1:] {
			require.Equal(t, f.first+16*uint64(i), addr, "frame %d", i)
		}
		return len(seen) == len(want) && min(seen[r.PID], samples) == samples
	})
}

// The code that pointer authentication puts into a return address begins where the addresses of programs end, as the
// kernel was built.
func TestSignedReturnAddresses(t *testing.T) {
	if runtime.GOARCH != "arm64" {
		t.Skip("return addresses are signed on aarch64 only")
	}
	const first, code = 0x40000, 1<<48 - 1<<39
	program := buildStacks(t)
	for mask, want := range map[uint64]uint64{1<<39 - 1: first, 1<<48 - 1: first | code} {
		s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, addressMask: mask})
		pid, _ := startStacks(t, program, "signed_links")
		require.NoError(t, s.SetUnwindMappings(identify(t, s, pid), nil, execPages(t, pid)))
		require.NoError(t, s.Start())
		readUntil(t, s, func(r *Record) bool {
			if r.PID != pid || len(r.UserFrames) != 5 || r.UserFrames[1]&(1<<39-1) != first {
				return false // it has not come that far
			}
			for i, addr := range r.UserFrames[1:] {
				require.Equal(t, want+16*uint64(i), addr, "mask %#x, frame %d", mask, i)
			}
			return true
		})
		require.NoError(t, s.Close())
	}
}

func TestAddressMask(t *testing.T) {
	for at, want := range map[uintptr]uint64{
		0xffffd51f2b48: 1<<48 - 1, 0x7ffe1af8d729: 1<<47 - 1, 0x3ffc7f91ab8: 1<<42 - 1, 0x7ff85b3a58: 1<<39 - 1,
		0xfffffd51f2b48: 1<<48 - 1, 0xbefff000: 1<<48 - 1, 0: 1<<48 - 1,
	} {
		require.Equal(t, want, addressMask([][2]uintptr{{6, 4096}, {atRandom, at}, {0, 0}}, nil), "%#x", at)
	}
	require.EqualValues(t, 1<<48-1, addressMask(nil, unix.ENOENT))
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil || !strings.Contains(line, "[stack]") {
			continue
		}
		mask := addressMask(unix.Auxv())
		require.Less(t, end-1, mask+1)
		require.Greater(t, end-1, mask>>1)
		require.Equal(t, mask, newSampler(t, Config{SamplesPerSecond: 97, RingBufferBytes: 1 << 20}).knobs[profilerVarAddressMask])
		return
	}
	require.Fail(t, "no stack")
}

// What lies between two mappings of a list is found once, and never taken for more than that: the frames of
// generated code go on to the next one of a file.
func TestGaps(t *testing.T) {
	t.Run("up", func(t *testing.T) { testGaps(t, "many_links", func(frame int) int { return frame }) })
	t.Run("down", func(t *testing.T) { testGaps(t, "links_down", func(frame int) int { return 121 - frame }) })
}

// placeOf says where the code of the caller of a number is among all.
func testGaps(t *testing.T, kind string, placeOf func(int) int) {
	const first, step = 0x10000, 16
	const mostCut = 3 // samples of all: a page that the kernel moves cannot be read
	cut := 0
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	pid, _ := startStacks(t, buildStacks(t), kind)
	id := identify(t, s, pid)
	tables := map[bool]record.TableID{}
	for ends, rule := range map[bool]record.UnwindRule{false: {}, true: {CFA: record.CFAEnd}} {
		var err error
		tables[ends], err = s.AddUnwindTable(&record.UnwindTable{
			Rules: []record.UnwindRule{{}, rule}, Rows: []record.UnwindRow{1 << 16}, Index: []uint32{0, 1},
		})
		require.NoError(t, err)
	}
	// at is the mapping that holds one frame's code, where the stack ends or there is no rule.
	at := func(place int, ends bool) record.UnwindMapping {
		start := uint64(first + step*(place-2))
		return record.UnwindMapping{Start: start, Limit: start + step, Text: start, Table: tables[ends], Blocks: 1}
	}
	require.NoError(t, s.Start())
	for _, below := range []int{0, 1, 14, 15, 16, 17, 40} {
		for _, every := range []int{1, 2, 3, 50} {
			for _, end := range []int{1, 2, 5, 33, 34, 100} {
				var list []record.UnwindMapping
				for i := range below {
					list = append(list, record.UnwindMapping{Start: uint64(i) * 64, Limit: uint64(i)*64 + 8})
				}
				for place := range 121 {
					if place == placeOf(end) || place > 0 && place%every == 0 {
						list = append(list, at(place, place == placeOf(end)))
					}
				}
				require.NoError(t, s.SetUnwindMappings(id, list, execPages(t, pid)))
				since := skipOlder(t, s)
				readUntil(t, s, func(r *Record) bool {
					if r.PID != pid || r.TimeNs <= since || len(r.UserFrames) < 2 || r.UserFrames[1] != uint64(first+step*(placeOf(1)-1)) {
						return false
					}
					if r.UserStack == record.OutcomeNoRows && cut < mostCut {
						cut++
						return false
					}
					require.Equal(t, record.OutcomePresent.String(), r.UserStack.String())
					require.Len(t, r.UserFrames, 1+end, "%d below, every %d, end at %d", below, every, end)
					return true
				})
			}
		}
	}
}
