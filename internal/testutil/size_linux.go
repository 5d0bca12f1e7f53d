// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

const (
	// FullEnv set to 1 makes tests take their full numbers of samples, processes and
	// rounds (make test-all). Without it they take quick ones (make test).
	FullEnv = "CUSTOM_LABELS_FULL"
	// EmulatedEnv set to 1 says that an emulator runs everything 5 to 20 times as slowly as
	// a processor would: tests then take the smallest samples and longer deadlines, and
	// print each threshold that they lower.
	EmulatedEnv = "CUSTOM_LABELS_EMULATED"
)

// Full reports whether tests take their full numbers. See FullEnv.
func Full() bool { return os.Getenv(FullEnv) == "1" }

// Emulated reports whether this machine is emulated. See EmulatedEnv.
func Emulated() bool { return os.Getenv(EmulatedEnv) == "1" }

// Size is how much a test does. What it asserts is the same.
func Size[T any](full, quick, emulated T) T {
	switch {
	case Emulated():
		return emulated
	case Full():
		return full
	}
	return quick
}

var emulationSaid sync.Map // what was printed

// Threshold is what a test asserts. Where an emulated machine gets another one, that is
// printed, once for each name: a figure is judged by what stands beside it.
func Threshold[T any](t testing.TB, name string, native, emulated T) T {
	t.Helper()
	if !Emulated() {
		return native
	}
	sayEmulated(t, fmt.Sprintf("%s is %v instead of %v", name, emulated, native))
	return emulated
}

// LeftOut reports whether a test leaves something out because this machine is emulated,
// and prints that it does.
func LeftOut(t testing.TB, what string) bool {
	t.Helper()
	if Emulated() {
		sayEmulated(t, "without "+what)
	}
	return Emulated()
}

func sayEmulated(t testing.TB, what string) {
	if _, said := emulationSaid.LoadOrStore(t.Name()+what, true); !said {
		fmt.Printf("%s=1: %s: %s\n", EmulatedEnv, t.Name(), what)
	}
}
