// SPDX-License-Identifier: Apache-2.0

package command

import (
	"flag"
	"os"
	"runtime/debug"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
)

// MaxMemoryMiB bounds --max-memory.
const MaxMemoryMiB = 1 << 16

// MemoryFlag is the flag of all that read profiles.
type MemoryFlag struct{ mebibytes int64 }

// Register adds the flag, with its default.
func (f *MemoryFlag) Register(flags *flag.FlagSet, mebibytes int64, usage string) {
	flags.Int64Var(&f.mebibytes, "max-memory", mebibytes, usage)
}

// Valid reports whether the value is from 1 to MaxMemoryMiB.
func (f *MemoryFlag) Valid() bool { return f.mebibytes > 0 && f.mebibytes <= MaxMemoryMiB }

// Memory is the value.
func (f *MemoryFlag) Memory() input.Memory { return input.Memory(f.mebibytes << 20) }

// BaseBytes is what the command takes besides: code, tables, connections.
const BaseBytes = 192 << 20

// CollectBefore makes the garbage collector work harder before the process takes more,
// rather than let garbage take as much again as what is in use. GOMEMLIMIT overrides it.
func CollectBefore(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(BaseBytes + bytes)
	}
}
