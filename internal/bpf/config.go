//go:build linux

package bpf

import (
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"
	"time"
)

// Bounds of Config.
const (
	MinSamplesPerSecond = 1
	MaxSamplesPerSecond = 10_000
	MinRingBufferBytes  = 64 << 10
	MaxRingBufferBytes  = 1 << 30
	MinUserShare        = 0.01
)

// The rest of what is in BPF memory, by default.
const (
	defaultEventRing    = 256 << 10 // bytes
	defaultMaxProcesses = 32 << 10
	// Where maps cannot grow: processes with label sources, and chunks of mappings.
	olderMaxSources = 8 << 10
	olderMaxChunks  = 16 << 10
)

// Bounds of readDelay, and how long samples wait at most where there is no hurry: a multiple of eventDelay,
// so that one wake-up serves both.
const (
	minReadDelay  = 100 * time.Millisecond
	maxReadDelay  = 200 * time.Millisecond
	longReadDelay = 2 * eventDelay
)

// Config of a Sampler. The zero value of a limit means the built-in maximum.
type Config struct {
	// SamplesPerSecond and CPU. The period is fixed: 1e9 / SamplesPerSecond ns of CPU clock.
	SamplesPerSecond int
	// RingBufferBytes for samples; a power of two and a multiple of the page size.
	RingBufferBytes int
	// UserShare is the part of the ring buffer that unread samples of one user may
	// take, from MinUserShare to 1; 0 or 1: all of it.
	UserShare float64
	// ReadDelay is the longest that a record waits in a ring buffer while it is not filled so
	// far that the reader is woken; 0: what suits SamplesPerSecond.
	ReadDelay time.Duration
	// MaxReadDelay is the most that suits whoever gets the samples, where ReadDelay is 0; 0: any.
	MaxReadDelay time.Duration
	// EventRingBytes for the events of processes; a power of two and a multiple of the
	// page size; 0: 256 KiB.
	EventRingBytes int
	// MaxProcesses of which something is known at the same time; 0: 32768. Where maps cannot grow, or
	// MaxMapBytes is small, fewer of them can have label sources.
	MaxProcesses int
	// MaxMapBytes of kernel memory for all maps together; 0: what the other limits give.
	// The maps that grow with the processes get what the others leave.
	MaxMapBytes int
	// MaxTableBytes of it are set aside for unwind tables; who adds them sees to that.
	MaxTableBytes int
	// OffCPURingBytes is OffCPUConfig.RingBufferBytes, for which room is set aside; 0: no OffCPU.
	OffCPURingBytes int
	// SkipLabels leaves all labels unread.
	SkipLabels bool
	// SkipStacks leaves all stacks unread.
	SkipStacks bool
	// SelectTargets lets Filter have an effect. Without it, no sample costs a lookup for that.
	SelectTargets bool
	// JudgeForked has a forked child start unfiltered although its parent is filtered.
	JudgeForked bool
	// FramePointersOnly walks user stacks without unwind rows.
	FramePointersOnly bool
	// WholeVerifierLog is in a load error; else its last lines are.
	WholeVerifierLog bool

	// For tests.
	older           bool          // the objects for older kernels are used
	preemptible     bool          // the programs are used that the kernel may preempt
	eventDelay      time.Duration // the longest that an event waits which can; 0: the default
	maxKernelFrames int           // 0: as many as the kernel gives
	addressMask     uint64        // 0: the bits of the addresses that programs have here
	slowDelay       time.Duration // as slowReadDelay; 0: what follows from the rest
}

// Period between two samples of one CPU.
func (c *Config) Period() time.Duration {
	return time.Duration(int64(time.Second) / int64(c.SamplesPerSecond))
}

func (c *Config) eventRingBytes() uint32 {
	if c.EventRingBytes == 0 {
		return defaultEventRing
	}
	return uint32(c.EventRingBytes)
}

func (c *Config) validate() error {
	if c.SamplesPerSecond < MinSamplesPerSecond || c.SamplesPerSecond > MaxSamplesPerSecond {
		return fmt.Errorf("samples per second %d is outside %d to %d",
			c.SamplesPerSecond, MinSamplesPerSecond, MaxSamplesPerSecond)
	}
	if err := validateUserShare(c.UserShare); err != nil {
		return err
	}
	return validateRingBytes(c.RingBufferBytes)
}

func validateRingBytes(n int) error {
	if n < MinRingBufferBytes || n > MaxRingBufferBytes || bits.OnesCount(uint(n)) != 1 || n%os.Getpagesize() != 0 {
		return fmt.Errorf("ring buffer bytes %d is not a power of two between %d and %d that the page size divides",
			n, MinRingBufferBytes, MaxRingBufferBytes)
	}
	return nil
}

// lowered returns the limit v, or limit where v is unset or above it.
func lowered(v, limit int) uint32 {
	if v <= 0 || v > limit {
		return uint32(limit)
	}
	return uint32(v)
}

const atRandom = 25 // AT_RANDOM, include/uapi/linux/auxvec.h: 16 bytes on the stack

// kernelFrames is how many frames of its own stack the kernel gives; 0: nobody knows
// (kernel.perf_event_max_stack, Documentation/admin-guide/sysctl/kernel.rst).
func kernelFrames() int {
	text, err := os.ReadFile("/proc/sys/kernel/perf_event_max_stack")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// addressMask is the bits of the addresses that programs have, by an address of the stack of this one: the kernel puts it
// at most some GiB below the end of them (fs/exec.c, setup_arg_pages; fs/binfmt_elf.c, randomize_stack_top).
func addressMask(auxv [][2]uintptr, err error) uint64 {
	const most, least = 48, 36 // CONFIG_ARM64_VA_BITS; with 52 of them, programs have 48 unless they ask for more
	for _, entry := range auxv {
		if n := bits.Len64(uint64(entry[1])); err == nil && entry[0] == atRandom && n >= least && n < most {
			return 1<<n - 1
		}
	}
	return 1<<most - 1
}

// readDelay is ReadDelay, or as long as a CPU needs for a few samples, but at most MaxReadDelay. To wake
// up costs as much CPU time as to read dozens of samples.
func (c *Config) readDelay() time.Duration {
	const samples = 4
	if c.ReadDelay > 0 {
		return c.ReadDelay
	}
	delay := min(max(samples*time.Second/time.Duration(c.SamplesPerSecond), minReadDelay), maxReadDelay)
	if c.MaxReadDelay > 0 {
		delay = min(delay, c.MaxReadDelay)
	}
	return delay
}

// slowReadDelay is readDelay where there is no hurry: longer, unless MaxReadDelay is less, or as many
// samples would come meanwhile that to wake up costs little beside them.
func (c *Config) slowReadDelay() time.Duration {
	const samplesPerSecond = 120
	switch {
	case c.slowDelay > 0:
		return c.slowDelay
	case c.ReadDelay > 0, c.SamplesPerSecond > samplesPerSecond, c.MaxReadDelay > 0 && c.MaxReadDelay < longReadDelay:
		return c.readDelay()
	}
	return longReadDelay
}
