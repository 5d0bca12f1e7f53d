//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"time"
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
