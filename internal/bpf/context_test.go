//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// contextEventsEnv is set where the kernel is known to let functions be traced ("1"), or
// known not to ("0").
const contextEventsEnv = "CUSTOM_LABELS_CONTEXT_EVENTS"

// announceAs makes calls of prctl, of which the argument says what they name.
func announceAs(name string, times int) {
	text := append([]byte(name), 0)
	for range times {
		// Kernels that name no mappings refuse it, when they have been through the hook.
		_ = unix.Prctl(unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, 0x10000, 0x1000, uintptr(unsafe.Pointer(&text[0])))
	}
}

// The announcements of a process context come as events, other uses of prctl do not, and
// neither does a flood. Where the kernel does not let functions be traced, all else works.
func TestContextEvents(t *testing.T) {
	testutil.RequireBPF(t)
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Follow())
	err := s.ContextEvents()
	switch os.Getenv(contextEventsEnv) {
	case "1":
		require.NoError(t, err)
	case "0":
		require.Error(t, err)
	default:
		require.Equal(t, testutil.Can(t, testutil.TraceFunctions), err == nil, "events: %v", err)
	}
	self := identify(t, s, uint32(os.Getpid()))
	events := make(chan record.Event, 100_000)
	go func() {
		var ev record.Event
		for readEvent(s, &ev) == nil {
			if ev.Kind == record.EventContextNamed && ev.Process == self || ev.Kind == record.EventFork && ev.Parent == self {
				events <- ev
			}
		}
		close(events)
	}()
	const calls = 10_000
	began := time.Now()
	for _, name := range []string{"OTEL_CT", "OTEL_CTXX", "", "heap"} {
		announceAs(name, 1)
	}
	announceAs("OTEL_CTX", 1)
	time.Sleep(20 * time.Millisecond)
	announceAs("OTEL_CTX", calls)
	atMost := int(time.Since(began)/(10*time.Millisecond)) + 2
	require.NoError(t, exec.Command("true").Run()) // an event that comes behind
	named := 0
	for ev := range events {
		if ev.Kind == record.EventFork {
			break
		}
		require.EqualValues(t, os.Getpid(), ev.PID)
		require.NotZero(t, ev.TimeNs)
		named++
	}
	if err != nil {
		t.Logf("no events: %v", err)
		require.Zero(t, named)
	} else {
		require.GreaterOrEqual(t, named, 2)
		require.LessOrEqual(t, named, atMost)
	}
	require.NoError(t, s.Close())
}

// A user's announcements take a part of what there may be on a CPU: they do not take the place of another's, and what is
// beyond is counted.
func TestContextEventsOfUsers(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	spec, err := s.kernel.loadContexts()
	require.NoError(t, err)
	spec.Maps[contextsMapEvents].MaxEntries = s.objs.Events.MaxEntries()
	program := spec.Programs[contextsProgContextNamed]
	program.Type, program.AttachType, program.AttachTo = ebpf.RawTracepoint, ebpf.AttachNone, ""
	var hook struct {
		contextHook
		Publishers *ebpf.Map `ebpf:"publishers"`
	}
	require.NoError(t, s.loadObjects(spec, &hook, map[string]*ebpf.Map{"events": s.objs.Events, "counts": s.objs.Counts}))
	defer func() { require.NoError(t, errors.Join(hook.close(), hook.Publishers.Close())) }()

	runtime.LockOSThread() // and never unlocked: the thread ends as the user that it became
	var cpus unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &cpus))
	for cpu := 0; cpus.Count() > 1; cpu++ {
		cpus.Clear(cpu)
	}
	require.NoError(t, unix.SchedSetaffinity(0, &cpus))
	self := identify(t, s, uint32(os.Getpid()))
	name := []byte("OTEL_CTX\x00")
	run := &ebpf.RunOptions{Context: [5]uint64{unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, 0, 0, uint64(uintptr(unsafe.Pointer(&name[0])))}}
	announce := func(uid uintptr, times int) {
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, ^uintptr(0), ^uintptr(0))
		require.Zero(t, errno)
		for range times {
			if err := hook.Publishers.Delete(&self); err != nil { // as if it was another process
				require.ErrorIs(t, err, ebpf.ErrKeyNotExist)
			}
			_, err := hook.ContextNamed.Run(run)
			require.NoError(t, err)
		}
	}
	refused := func() uint64 {
		counters, err := s.Counters()
		require.NoError(t, err)
		return counters.ContextsRefused
	}
	const most, window = 4, time.Millisecond // as in context.bpf.c
	rounds := 0
	for attempt := 0; rounds < 20 && attempt < 1000; attempt++ {
		time.Sleep(window)
		before, began := refused(), time.Now()
		announce(1000, most+2)
		took := time.Since(began)
		of := refused()
		announce(2000, 1)
		require.Equal(t, of, refused(), "another user's")
		if took < window { // else some were in another time
			rounds++
			require.EqualValues(t, 2, of-before)
		}
	}
	require.Positive(t, rounds)
	runtime.KeepAlive(name)
}

// The program tells of an announcement, also where the kernel does not let functions be traced: it is run as one
// of another type. While there is a record that is not complete, and not before, it cannot be preempted, if the
// kernel can do that.
func TestContextProgram(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	for _, preemptOff := range slices.Compact([]bool{false, s.kernel.preemptOff}) {
		spec, err := (&kernel{preemptOff: preemptOff}).loadContexts()
		require.NoError(t, err)
		require.NoError(t, setVariables(spec, map[string]any{profilerVarPidNsInum: s.knobs[profilerVarPidNsInum]}))
		spec.Maps[contextsMapEvents].MaxEntries = s.objs.Events.MaxEntries()
		program := spec.Programs[contextsProgContextNamed]
		program.Type, program.AttachType, program.AttachTo = ebpf.RawTracepoint, ebpf.AttachNone, ""
		var calls []asm.Instruction
		for _, ins := range program.Instructions {
			if ins.OpCode.JumpOp() == asm.Call {
				calls = append(calls, ins)
			}
			require.False(t, ins.IsBuiltinCall() && ins.Constant == int64(asm.FnRingbufReserve))
		}
		writes := slices.IndexFunc(calls, func(ins asm.Instruction) bool {
			return ins.IsBuiltinCall() && ins.Constant == int64(asm.FnRingbufOutput)
		})
		require.Positive(t, writes)
		require.Equal(t, preemptOff, calls[writes-1].IsKfuncCall())
		require.Equal(t, preemptOff, calls[writes+1].IsKfuncCall())
		var hook contextHook
		require.NoError(t, s.loadObjects(spec, &hook, map[string]*ebpf.Map{"events": s.objs.Events, "counts": s.objs.Counts}))
		name := []byte("OTEL_CTX\x00")
		run := &ebpf.RunOptions{Context: [5]uint64{unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, 0, 0, uint64(uintptr(unsafe.Pointer(&name[0])))}}
		_, err = hook.ContextNamed.Run(run)
		require.NoError(t, err)
		runtime.KeepAlive(name)
		var ev record.Event
		require.NoError(t, readEvent(s, &ev))
		require.Equal(t, record.EventContextNamed, ev.Kind)
		require.Equal(t, os.Getpid(), ev.PID)
		require.Equal(t, identify(t, s, uint32(os.Getpid())), ev.Process)
		require.NoError(t, hook.close())
	}
}
