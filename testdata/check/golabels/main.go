// SPDX-License-Identifier: Apache-2.0

// Labels of goroutines by the rules, but for the one that the first argument names. Readers find
// none where it is built without symbols: with C code that has thread-local variables, nothing else
// tells where threads have their goroutines.
package main

/*
#cgo CFLAGS: -D_GNU_SOURCE
#include "../context.c"

static __thread volatile int calls[20];

// Of the rules for the process context.
bool breaks(const char *name)
{
	(void)name;
	return false;
}

void *unmapped(void)
{
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	calls[0]++;
	if (page == MAP_FAILED)
		exit(1);
	return page;
}
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"syscall"
	"time"
	"unsafe"
)

// setLabels is what runtime/pprof gives a goroutine its labels with.
//
//go:linkname setLabels runtime/pprof.runtime_setProfLabel
func setLabels(labels unsafe.Pointer)

func main() {
	// With its parent it ends, too.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0)
	rule := ""
	if len(os.Args) > 1 {
		rule = os.Args[1]
	}
	if rule == "schema" {
		C.publish_context() // as a program whose threads have contexts
	}
	go work(rule)
	fmt.Println("ready", os.Getpid())
	time.Sleep(30 * time.Second)
}

func work(rule string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("tenant", "acme")))
	if rule == "set-readable" {
		setLabels(C.unmapped())
	}
	for {
		for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
		}
		time.Sleep(time.Millisecond)
	}
}
