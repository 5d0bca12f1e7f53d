//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// keysOf returns the processes that have an element in a map.
func keysOf[V any](t *testing.T, m *ebpf.Map) (ids []record.ProcessID) {
	t.Helper()
	var id record.ProcessID
	var value V
	all := m.Iterate()
	for all.Next(&id, &value) {
		ids = append(ids, id)
	}
	require.NoError(t, all.Err())
	return ids
}

// forkOf has a shell fork once told has set something of it, and returns both.
func forkOf(t *testing.T, s *Sampler, told func(parent record.ProcessID)) (parent, child record.ProcessID) {
	t.Helper()
	require.NoError(t, s.Follow())
	sh := exec.Command("/bin/sh", "-c", "read go; (read x); true")
	stdin, err := sh.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	t.Cleanup(func() {
		require.NoError(t, stdin.Close())
		require.NoError(t, sh.Wait())
	})
	parent = awaitExec(t, s, sh.Process.Pid)
	told(parent)
	_, err = stdin.Write([]byte("\n"))
	require.NoError(t, err)
	forked := record.Event{}
	for forked.Kind != record.EventFork || forked.Parent != parent {
		require.NoError(t, readEvent(s, &forked))
	}
	return parent, forked.Process
}

// What a process has begun with stays until it is replaced, each part for itself.
func TestInheritedStays(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	var lists uint64
	parent, child := forkOf(t, s, func(parent record.ProcessID) {
		require.NoError(t, s.SetLabelSources(parent, []record.LabelSource{{ABI: 2, Offset: 42}}))
		require.NoError(t, s.SetRuntime(parent, record.RuntimeProcess{Kind: record.RuntimeCPython}))
		require.NoError(t, s.SetUnwindMappings(parent, []record.UnwindMapping{{Start: 1, Limit: 2}}, 7))
		lists = s.listID
	})
	entry := func() (e record.ProcessEntry) {
		t.Helper()
		require.NoError(t, s.objs.Processes.Lookup(&child, &e))
		e.Seal = 0
		return e
	}
	want := record.ProcessEntry{
		Labelled: true, BySample: true, Runtime: uint8(record.RuntimeCPython), Mappings: 1, List: lists, ExecPages: 7,
	}
	require.Equal(t, want, entry())
	require.NoError(t, s.SetLabelSources(child, nil))
	want.Labelled, want.BySample = false, false
	require.Equal(t, want, entry())
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.LabelSources](t, s.objs.LabelSources))
	require.NoError(t, s.SetUnwindMappings(child, nil, 8))
	want.Mappings, want.List, want.ExecPages = 0, lists+1, 8
	require.Equal(t, want, entry())
	require.Len(t, keysOf[record.RuntimeProcess](t, s.objs.Runtimes), 2)
	require.NoError(t, s.SetRuntime(child, record.RuntimeProcess{}))
	want.Runtime = 0
	require.Equal(t, want, entry())
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.RuntimeProcess](t, s.objs.Runtimes))
	// Of a process of which nothing is known there is nothing.
	require.NoError(t, s.ForgetMappings(child))
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.ProcessEntry](t, s.objs.Processes))
	require.NotContains(t, s.processes, child)
	var chunk record.UnwindChunk
	require.NoError(t, s.objs.UnwindMappings.Lookup(record.UnwindChunkKey{List: lists}, &chunk), "its parent's are there")
}

// What is in the map under a process's key, but of another one, is not known of it.
func TestKnownOfOthers(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	id, other := record.ProcessID{TGID: 1}, record.ProcessID{TGID: 2}
	entry := record.ProcessEntry{List: 4711, Mappings: 1}
	for of, want := range map[record.ProcessID]uint64{id: 4711, other: 0} {
		sealProcess(&of, &entry)
		require.NoError(t, s.objs.Processes.Put(&id, &entry))
		require.Equal(t, want, s.known(id).entry.List)
	}
}

// Forget takes back all that was set.
func TestForget(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	id := record.ProcessID{TGID: 1, StartNs: 2, ExecID: 3}
	require.NoError(t, s.SetLabelSources(id, []record.LabelSource{{ABI: 2}}))
	require.NoError(t, s.SetRuntime(id, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	require.NoError(t, s.SetUnwindMappings(id, make([]record.UnwindMapping, record.UnwindChunkMappings+1), 0))
	require.NoError(t, s.Forget(id))
	require.NoError(t, s.Forget(id), "again")
	require.Empty(t, keysOf[record.ProcessEntry](t, s.objs.Processes))
	require.Empty(t, keysOf[record.LabelSources](t, s.objs.LabelSources))
	require.Empty(t, keysOf[record.RuntimeProcess](t, s.objs.Runtimes))
	var key record.UnwindChunkKey
	require.ErrorIs(t, s.objs.UnwindMappings.NextKey(nil, &key), ebpf.ErrKeyNotExist)
	require.Empty(t, s.processes)

	// A process without anything takes no room.
	require.NoError(t, s.SetLabelSources(id, nil))
	require.Empty(t, keysOf[record.ProcessEntry](t, s.objs.Processes))
	// One that is not wanted has nothing else.
	require.NoError(t, s.SetLabelSources(id, []record.LabelSource{{ABI: 2}}))
	require.NoError(t, s.Filter(id))
	require.Len(t, keysOf[record.ProcessEntry](t, s.objs.Processes), 1)
	require.Empty(t, keysOf[record.LabelSources](t, s.objs.LabelSources))
	require.NoError(t, s.SetLabelSources(id, nil))
	require.Empty(t, keysOf[record.ProcessEntry](t, s.objs.Processes))
}

// ForgetRunning also takes back what a process has begun with, of which nothing was told; and that is told again when
// it is known.
func TestForgetRunning(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	sources := []record.LabelSource{{ABI: 2, Offset: 42}}
	parent, child := forkOf(t, s, func(parent record.ProcessID) {
		require.NoError(t, s.SetLabelSources(parent, sources))
		require.NoError(t, s.SetRuntime(parent, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	})
	of := func(ids ...record.ProcessID) {
		t.Helper()
		require.ElementsMatch(t, ids, keysOf[record.ProcessEntry](t, s.objs.Processes))
		require.ElementsMatch(t, ids, keysOf[record.LabelSources](t, s.objs.LabelSources))
		require.ElementsMatch(t, ids, keysOf[record.RuntimeProcess](t, s.objs.Runtimes))
	}
	of(parent, child)
	require.NoError(t, s.Forget(child))
	of(parent, child)
	require.NoError(t, s.ForgetRunning(child))
	of(parent)
	require.NoError(t, s.ForgetRunning(child), "again")
	require.NotContains(t, s.processes, child)

	require.NoError(t, s.SetLabelSources(child, sources))
	require.NoError(t, s.SetRuntime(child, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	of(parent, child)
	require.NoError(t, s.ForgetRunning(child), "what was told goes, too")
	of(parent)
	require.NotContains(t, s.processes, child)
}

// A process for which there is no room has nothing, and leaves nothing behind.
func TestNoRoomForProcess(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, MaxProcesses: 2})
	other, third := record.ProcessID{TGID: 1}, record.ProcessID{TGID: 2}
	parent, _ := forkOf(t, s, func(parent record.ProcessID) {
		require.NoError(t, s.SetLabelSources(parent, []record.LabelSource{{ABI: 2}}))
		require.NoError(t, s.Filter(other))
	})
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.LabelSources](t, s.objs.LabelSources), "not the child")
	require.Error(t, s.SetLabelSources(third, []record.LabelSource{{ABI: 2}}))
	require.Error(t, s.SetUnwindMappings(third, make([]record.UnwindMapping, 1), 0))
	require.Error(t, s.SetRuntime(third, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.LabelSources](t, s.objs.LabelSources))
	require.Empty(t, keysOf[record.RuntimeProcess](t, s.objs.Runtimes))
	var key record.UnwindChunkKey
	require.ErrorIs(t, s.objs.UnwindMappings.NextKey(nil, &key), ebpf.ErrKeyNotExist)
	require.NotContains(t, s.processes, third)
	require.ElementsMatch(t, []record.ProcessID{parent, other}, keysOf[record.ProcessEntry](t, s.objs.Processes))
}

// What was told of a process stays when no more can be told of it.
func TestToldStays(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	id := record.ProcessID{TGID: 1, StartNs: 2, ExecID: 3}
	require.NoError(t, s.SetLabelSources(id, []record.LabelSource{{ABI: 2}}))
	require.NoError(t, s.SetUnwindMappings(id, make([]record.UnwindMapping, 1), 7))
	var before, after record.ProcessEntry
	require.NoError(t, s.objs.Processes.Lookup(&id, &before))
	chunks := keysOfChunks(t, s)
	require.NoError(t, s.objs.Processes.Freeze()) // nothing can be set any more

	require.Error(t, s.SetUnwindMappings(id, make([]record.UnwindMapping, 2), 8))
	require.Error(t, s.SetRuntime(id, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	require.NoError(t, s.objs.Processes.Lookup(&id, &after))
	require.Equal(t, before, after)
	require.Equal(t, before, s.processes[id].entry)
	require.Equal(t, []record.ProcessID{id}, keysOf[record.LabelSources](t, s.objs.LabelSources))
	require.Empty(t, keysOf[record.RuntimeProcess](t, s.objs.Runtimes))
	require.Equal(t, chunks, keysOfChunks(t, s))

	require.Error(t, s.SetLabelSources(id, []record.LabelSource{{ABI: 1}}))
	require.Empty(t, keysOf[record.LabelSources](t, s.objs.LabelSources), "it has none after an error")
}

func keysOfChunks(t *testing.T, s *Sampler) (keys []record.UnwindChunkKey) {
	t.Helper()
	var key record.UnwindChunkKey
	var chunk record.UnwindChunk
	all := s.objs.UnwindMappings.Iterate()
	for all.Next(&key, &chunk) {
		keys = append(keys, key)
	}
	require.NoError(t, all.Err())
	return keys
}

// A process may begin with what others have at the moment at which something is told of it.
func TestBegunMeanwhile(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	id := record.ProcessID{TGID: 1, StartNs: 2, ExecID: 3}
	begun := record.ProcessEntry{Labelled: true, BySample: true, Runtime: 2, List: 5, Mappings: 6, ExecPages: 7}
	for name, tc := range map[string]struct{ told, want record.ProcessEntry }{
		"a list": {
			record.ProcessEntry{List: 8, Mappings: 9, ExecPages: 10},
			record.ProcessEntry{Labelled: true, Runtime: 2, List: 8, Mappings: 9, ExecPages: 10},
		},
		"a runtime": {
			record.ProcessEntry{Runtime: 1},
			record.ProcessEntry{Labelled: true, Runtime: 1, List: 5, Mappings: 6, ExecPages: 7},
		},
		"that it is not wanted": {
			record.ProcessEntry{Filtered: true},
			record.ProcessEntry{Labelled: true, Filtered: true, Runtime: 2, List: 5, Mappings: 6, ExecPages: 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sealProcess(&id, &begun)
			require.NoError(t, s.objs.Processes.Put(&id, &begun))
			require.NoError(t, s.put(id, &tc.told, false))
			var got record.ProcessEntry
			require.NoError(t, s.objs.Processes.Lookup(&id, &got))
			require.Equal(t, tc.told, got, "it is what is remembered")
			sealProcess(&id, &tc.want)
			require.Equal(t, tc.want, got)
			require.NoError(t, s.put(id, &record.ProcessEntry{Filtered: true}, true))
			require.NoError(t, s.objs.Processes.Lookup(&id, &got))
			require.False(t, got.Labelled, "it was known to be there")
		})
	}
}

// An exec can fail when the process has given up what it was: then it ends, and leaves nothing.
func TestFailedExec(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	require.NoError(t, s.Follow())
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, unloadable(), 0o700))
	sh := exec.Command("/bin/sh", "-c", "read go; "+program+"; read go")
	stdin, err := sh.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	parent := awaitExec(t, s, sh.Process.Pid)
	require.NoError(t, s.SetLabelSources(parent, []record.LabelSource{{ABI: 2, Offset: 42}}))
	require.NoError(t, s.SetRuntime(parent, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	_, err = stdin.Write([]byte("\n"))
	require.NoError(t, err)
	var child record.ProcessID
	for ev := (record.Event{}); ev.Kind != record.EventExit || ev.Process.TGID != child.TGID; {
		require.NoError(t, readEvent(s, &ev))
		if ev.Kind == record.EventFork && ev.Parent == parent {
			child = ev.Process
		}
		require.False(t, ev.Kind == record.EventExec && ev.Process.TGID == child.TGID, "the exec must fail")
		if ev.Kind == record.EventExit && ev.Process.TGID == child.TGID {
			require.Equal(t, child.ExecID+1, ev.Process.ExecID, "and late")
		}
	}
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.ProcessEntry](t, s.objs.Processes))
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.LabelSources](t, s.objs.LabelSources))
	require.Equal(t, []record.ProcessID{parent}, keysOf[record.RuntimeProcess](t, s.objs.Runtimes))
	require.NoError(t, stdin.Close())
	_ = sh.Wait()
}

// unloadable is a program that the kernel takes for one until it maps its only segment, which is larger
// than all of user space (load_elf_binary() of fs/binfmt_elf.c).
func unloadable() []byte {
	machine := elf.EM_X86_64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_AARCH64
	}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: 0x400000, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	})
	_ = binary.Write(&b, binary.LittleEndian, elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: 0x400000, Filesz: 120, Memsz: 1 << 62, Align: 4096,
	})
	return b.Bytes()
}
