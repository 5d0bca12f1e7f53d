//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
	"unsafe"
)

const tracingDir = "/sys/kernel/tracing/"

// enableTracing has the kernel's own tracing listen to what BPF programs are attached to,
// for as long as the guest runs. The first and the second listener to a tracepoint make the
// kernel change its code, on x86-64 by way of a breakpoint, and an emulator may miss that
// (QEMU before 8.1 does, if it is just translating that code for another CPU): programs are
// never run then, or a CPU meets a breakpoint that is not there any more, and the guest
// panics. So that is done once, where no other CPU is busy and it can be tried again;
// further listeners are in a list. The event has one listener, and makes another one for
// the names of threads.
func enableTracing() {
	const attempts = 20
	for range attempts {
		set("events/sched/sched_switch/enable", "1")
		if sees("sched_switch:") {
			break
		}
		set("events/sched/sched_switch/enable", "0")
	}
	for _, event := range []string{"fork", "exec", "exit"} {
		set("events/sched/sched_process_"+event+"/enable", "1")
	}
	set("tracing_on", "0") // they listen, and nothing is kept
	set("trace", "")
	followSwitches()
}

// followSwitches has the scheduler tell the kernel's perf of switches, for as long as the
// guest runs. It does where any event belongs to a thread; the first such event and the end
// of the last one change the scheduler's code likewise, and a receiver opens one when it
// starts (see perf_sched_events in the kernel's kernel/events/core.c).
func followSwitches() {
	attr := struct { // the beginning of include/uapi/linux/perf_event.h's perf_event_attr
		kind, size uint32
		config     uint64
		_          [6]uint64
	}{kind: 1, config: 9} // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY
	attr.size = uint32(unsafe.Sizeof(attr))
	const anyCPU, noGroup, closeOnExec = ^uintptr(0), ^uintptr(0), 1 << 3
	_, _, errno := syscall.Syscall6(syscall.SYS_PERF_EVENT_OPEN,
		uintptr(unsafe.Pointer(&attr)), uintptr(os.Getpid()), anyCPU, noGroup, closeOnExec, 0)
	if errno != 0 {
		fmt.Println("guestinit: open a perf event:", errno)
	}
}

// set writes a file of the tracing file system. Programs do not depend on that.
func set(name, value string) {
	if err := os.WriteFile(tracingDir+name, []byte(value), 0o600); err != nil {
		fmt.Println("guestinit: trace:", err)
	}
}

// sees reports whether an event comes to be traced.
func sees(event string) bool {
	for range 20 {
		time.Sleep(5 * time.Millisecond) // which makes switches
		trace, err := os.ReadFile(tracingDir + "trace")
		if err != nil || bytes.Contains(trace, []byte(event)) {
			return true // or there is nothing to wait for
		}
	}
	fmt.Println("guestinit: the kernel does not trace", event)
	return false
}
