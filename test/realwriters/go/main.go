// SPDX-License-Identifier: Apache-2.0

// Command ddwriter is a service that is traced by dd-trace-go: requests in
// goroutines, each with a span of its own, at work. For each it prints
//
//	span ID EVEN BEGIN END
//
// when it ends: its id, in decimal, which of two functions it has
// run, and when (CLOCK_MONOTONIC, ns). The traces go nowhere. CHILD, in the environment,
// is a program that it runs meanwhile: a line "child PID".
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
)

const workers = 4

func main() {
	err := tracer.Start(
		tracer.WithService("dd-shop"), tracer.WithEnv("test"),
		tracer.WithAgentAddr("127.0.0.1:1"), // closed: nobody is told
		tracer.WithProfilerCodeHotspots(true), tracer.WithProfilerEndpoints(true),
		tracer.WithLogStartup(false), tracer.WithLogger(silent{}),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer tracer.Stop()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	fmt.Printf("ready %d\n", os.Getpid())
	if program := os.Getenv("CHILD"); program != "" {
		child := exec.CommandContext(ctx, program, "spin", "--seconds", "600")
		if err := child.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("child %d\n", child.Process.Pid)
		defer func() { _ = child.Wait() }()
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				request(n)
			}
		})
	}
	all.Wait()
}

// request is a root span with a child; the work is the child's.
func request(n int) {
	root, ctx := tracer.StartSpanFromContext(context.Background(), "web.request", tracer.ResourceName("GET /"))
	defer root.Finish()
	child, _ := tracer.StartSpanFromContext(ctx, "work")
	defer child.Finish()
	even := n%2 == 0
	begin := monotonic()
	if even {
		burnEven()
	} else {
		burnOdd()
	}
	fmt.Printf("span %d %t %d %d\n", child.Context().SpanID(), even, begin, monotonic())
}

// monotonic is the clock of samples.
func monotonic() int64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

//go:noinline
func burnEven() uint64 { return burn(2) }

//go:noinline
func burnOdd() uint64 { return burn(3) }

//go:noinline
func burn(x uint64) uint64 {
	for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
		for range 20_000 {
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
	return x
}

type silent struct{}

func (silent) Log(string) {}
