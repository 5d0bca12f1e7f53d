// Goroutines that tell their stacks, as pprof labels "case" and "stack" in the words of
// ../truth.h: golang [SECONDS]
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	turn  = 10 * time.Millisecond
	depth = 300
	// others are Go's own functions on top: growing a stack, preemption, the clock.
	others = 24
)

var (
	stop atomic.Bool
	sink atomic.Uint64
)

// work is inlined where it is used.
func work(n uint64) (sum uint64) {
	for i := range n {
		sum += i ^ sum<<1
	}
	return sum
}

//go:noinline
func w_spin() {
	sink.Store(work(200_000))
}

//go:noinline
func w_memmove() {
	var a, b [20000]byte
	for i := range 100 {
		copy(a[i:], b[:])
	}
	sink.Store(uint64(a[0]))
}

//go:noinline
func w_syscall() {
	for range 300 {
		syscall.Getppid()
	}
}

//go:noinline
func w_vdso() {
	for range 300 {
		sink.Store(uint64(time.Now().UnixNano()))
	}
}

//go:noinline
func w_channel() {
	c := make(chan int, 1)
	for i := range 1000 {
		c <- i
		<-c
	}
}

//go:noinline
func w_A(path string, bottom func()) {
	w_N(path, bottom)
	sink.Add(1)
}

// A frame of more than a page.
//
//go:noinline
func w_B(path string, bottom func()) {
	var locals [6000]byte
	locals[len(path)] = 1
	w_N(path, bottom)
	sink.Add(uint64(locals[0]))
}

// With a call that happens when it returns.
//
//go:noinline
func w_C(path string, bottom func()) {
	defer sink.Add(1)
	w_N(path, bottom)
}

type receiver struct{ n uint64 }

// A method, called through an interface.
//
//go:noinline
func (r *receiver) w_D(path string, bottom func()) {
	w_N(path, bottom)
	sink.Add(r.n)
}

type caller interface {
	w_D(path string, bottom func())
}

var through caller = &receiver{1}

// Perhaps inlined, which must make no difference.
func w_N(path string, bottom func()) {
	if path == "" {
		bottom()
		return
	}
	switch rest := path[1:]; path[0] {
	case 'A':
		w_A(rest, bottom)
	case 'B':
		w_B(rest, bottom)
	case 'C':
		w_C(rest, bottom)
	case 'D':
		through.w_D(rest, bottom)
	}
}

//go:noinline
func w_goroutine(name, path, leaf string, bottom func()) {
	told := fmt.Sprintf("w_goroutine;?3;%%%s;+%s;?%d", "N"+strings.Join(strings.Split(path, ""), "N")+"N", leaf, others)
	pprof.Do(context.Background(), pprof.Labels("case", name, "stack", told), func(context.Context) {
		for end := time.Now().Add(turn); time.Now().Before(end); {
			w_N(path, bottom)
		}
	})
}

func path(seed, length int) string {
	var b strings.Builder
	for i := range length {
		seed = seed*1103515245 + 12345 + i
		b.WriteByte("ABCD"[seed>>16&3])
	}
	return b.String()
}

type testCase struct {
	name, leaf string
	depth      int
	bottom     func()
}

var cases = []testCase{
	{"flat", "w_spin", 1, w_spin},
	{"deep", "w_spin", depth, w_spin},
	{"memmove", "w_memmove", 20, w_memmove},
	{"syscall", "w_syscall", 20, w_syscall},
	{"vdso", "w_vdso", 20, w_vdso},
	{"channel", "w_channel", 20, w_channel},
}

func main() {
	seconds := 10.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	time.AfterFunc(time.Duration(seconds*1e9), func() { stop.Store(true) })
	fmt.Printf("ready %d\n", os.Getpid())
	var running sync.WaitGroup
	for n := range 4 {
		running.Add(1)
		go func() {
			defer running.Done()
			for seed := n; !stop.Load(); seed += 4 {
				c := &cases[seed/4%len(cases)]
				done := make(chan struct{})
				// A goroutine of its own, whose stack has to grow.
				go func() {
					w_goroutine(c.name, path(seed, c.depth), c.leaf, c.bottom)
					close(done)
				}()
				<-done
			}
		}()
	}
	running.Wait()
}
