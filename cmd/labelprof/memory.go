// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"runtime/debug"
)

// maxMemoryMiB bounds --max-memory.
const maxMemoryMiB = 1 << 16

// memory is what reading profiles may take, in bytes. It is divided, so that a request
// that waits for its turn to be decoded takes nothing from the one before.
type memory int64

// message is the most bytes of a request from the network; maxReceiving of them, each in
// two copies while it is unpacked, take a half.
func (m memory) message() int64 { return int64(m) / (4 * maxReceiving) }

// file is the most bytes of a file that are looked at at once, unpacked.
func (m memory) file() int64 { return int64(m) / 4 }

// decoded is the most that one request or file may take when it is decoded.
func (m memory) decoded() int64 { return int64(m) / 2 }

// memoryFlag is the flag of all that read profiles.
type memoryFlag struct{ mebibytes int64 }

func (f *memoryFlag) register(flags *flag.FlagSet, mebibytes int64, usage string) {
	flags.Int64Var(&f.mebibytes, "max-memory", mebibytes, usage)
}

func (f *memoryFlag) valid() bool { return f.mebibytes > 0 && f.mebibytes <= maxMemoryMiB }

func (f *memoryFlag) memory() memory { return memory(f.mebibytes << 20) }

// baseBytes is what the command takes besides: code, tables, connections.
const baseBytes = 192 << 20

// collectBefore makes the garbage collector work harder before the process takes more,
// rather than let garbage take as much again as what is in use.
func collectBefore(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(baseBytes + bytes)
	}
}
