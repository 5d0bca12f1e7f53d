// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// burners run what they are given in a frame of their own, and the time is spent in
// a leaf function of their own.
var burners = []func(func(spin func(time.Duration))){burn0, burn1, burn2, burn3}

//go:noinline
func burn0(f func(func(time.Duration))) { f(spin0) }

//go:noinline
func burn1(f func(func(time.Duration))) { f(spin1) }

//go:noinline
func burn2(f func(func(time.Duration))) { f(spin2) }

//go:noinline
func burn3(f func(func(time.Duration))) { f(spin3) }

//go:noinline
func spin0(cpu time.Duration) {
	for end := time.Now().Add(cpu); time.Now().Before(end); {
		loop0()
	}
}

//go:noinline
func spin1(cpu time.Duration) {
	for end := time.Now().Add(cpu); time.Now().Before(end); {
		loop1()
	}
}

//go:noinline
func spin2(cpu time.Duration) {
	for end := time.Now().Add(cpu); time.Now().Before(end); {
		loop2()
	}
}

//go:noinline
func spin3(cpu time.Duration) {
	for end := time.Now().Add(cpu); time.Now().Before(end); {
		loop3()
	}
}

var sink [4]uint64

//go:noinline
func loop0() { sink[0] = mix(sink[0]) }

//go:noinline
func loop1() { sink[1] = mix(sink[1]) }

//go:noinline
func loop2() { sink[2] = mix(sink[2]) }

//go:noinline
func loop3() { sink[3] = mix(sink[3]) }

func mix(x uint64) uint64 {
	for range 2000 {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
