// SPDX-License-Identifier: Apache-2.0

// Command gowriter runs goroutines that change their pprof labels tens of thousands
// of times a second, and prove them by what they run: a goroutine labelled fn=burnN
// is in the function burnN from before its labels are set until after they are
// taken back, on whatever thread. Goroutines hop threads: they yield, hand over
// through channels, and wait.
//
// Labels, for the set n of goroutine id:
//
//	fn     the function that runs
//	check  "id:n:H", H being FNV-1a (64 bit) of "id:n", 16 hex digits
//	pad    n % 50 times 'p', so that strings differ in length and place
//	kN     N from 0 to n % 3: "v" + n; with -many, up to 30 of them
//
// A goroutine's first set is 1; the log (publicationLog) tells when each was current.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"
)

var (
	seconds    = flag.Int("seconds", 30, "end after so many")
	goroutines = flag.Int("goroutines", 8, "that run at a time")
	threads    = flag.Int("threads", 2, "GOMAXPROCS")
	depth      = flag.Int("depth", 0, "calls between the labels and the work")
	many       = flag.Bool("many", false, "sets of up to 30 labels")
	plain      = flag.Bool("plain", false, "set no labels at all")
	log        = flag.String("log", "", "a file for the log of publications, which is there and has its size")
)

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(*threads)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*seconds)*time.Second)
	defer cancel()
	callC()
	baton := make(chan struct{}, *goroutines/2+1)
	for range cap(baton) {
		baton <- struct{}{}
	}
	logs, err := openPublicationLogs(*log, *goroutines)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	done := make(chan struct{})
	for id := range *goroutines {
		go func() {
			work(ctx, id, baton, logs[id])
			done <- struct{}{}
		}()
	}
	fmt.Printf("ready %d\n", os.Getpid())
	for range *goroutines {
		<-done
	}
}

// work is one goroutine: sets of labels, one after the other.
func work(ctx context.Context, id int, baton chan struct{}, log *publicationLog) {
	for n := 1; ctx.Err() == nil; n++ {
		<-baton
		fn := (id + n) % len(burners)
		cpu := time.Duration(20+(n*37)%180) * time.Microsecond
		burners[fn](func(spin func(time.Duration)) {
			if *plain {
				spin(cpu)
				return
			}
			labels := labelsOf(id, n, fn)
			log.before(uint64(n))
			pprof.Do(context.Background(), labels, func(context.Context) {
				deep(*depth, func() { spin(cpu) })
			})
			log.after(uint64(n))
		})
		baton <- struct{}{}
		switch n % 4 {
		case 0:
			runtime.Gosched()
		case 1:
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// deep makes a stack of so many calls more.
//
//go:noinline
func deep(calls int, f func()) {
	if calls > 0 {
		deep(calls-1, f)
		return
	}
	f()
}

func labelsOf(id, n, fn int) pprof.LabelSet {
	body := fmt.Sprintf("%d:%d", id, n)
	hash := fnv.New64a()
	hash.Write([]byte(body))
	labels := []string{
		"fn", fmt.Sprintf("burn%d", fn),
		"check", fmt.Sprintf("%s:%016x", body, hash.Sum64()),
		"pad", strings.Repeat("p", n%50),
	}
	extra := n % 3
	if *many {
		extra = n % 27
	}
	for k := range extra {
		labels = append(labels, fmt.Sprintf("k%d", k), fmt.Sprintf("v%d", n))
	}
	return pprof.Labels(labels...)
}
