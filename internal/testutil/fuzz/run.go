// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	// ExecutionsEnv asks for the loop, and says for how many executions of
	// each target.
	ExecutionsEnv = "CUSTOM_LABELS_FUZZ_EXECUTIONS"
	// CorpusEnv names the directory in which Go's engine keeps the corpora of
	// this package's targets.
	CorpusEnv = "CUSTOM_LABELS_FUZZ_CORPUS"
	// SeedEnv is a number that starts the generator of the loop; 1 by default.
	SeedEnv = "CUSTOM_LABELS_FUZZ_SEED"
)

// Run fuzzes check, starting from seeds. check must neither change nor keep the
// bytes, and fails by way of t.
func Run(f *testing.F, seeds [][]byte, check func(t testing.TB, data []byte)) {
	f.Helper()
	for _, s := range seeds {
		f.Add(s)
	}
	if executions := number(f, ExecutionsEnv, 0); executions > 0 {
		corpus := append(append([][]byte{nil}, seeds...), found(f)...)
		loop(f, corpus, executions, check)
	}
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data) })
}

func number(f *testing.F, env string, otherwise uint64) uint64 {
	text := os.Getenv(env)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		f.Fatalf("%s: %v", env, err)
	}
	return n
}

// loop executes check with mutated inputs.
func loop(f *testing.F, corpus [][]byte, executions uint64, check func(testing.TB, []byte)) {
	m := newMutator(number(f, SeedEnv, 1), corpus)
	var data []byte
	passed := false
	defer func() {
		// Also when check panics or ends the goroutine by FailNow.
		if !passed {
			keep(f, data)
		}
	}()
	start := time.Now()
	for range executions {
		data = m.next()
		check(f, data)
	}
	passed = !f.Failed()
	taken := time.Since(start)
	f.Logf("loop %d executions in %.1f s, %.0f/sec, corpus %d", executions, taken.Seconds(), float64(executions)/taken.Seconds(), len(corpus))
}
