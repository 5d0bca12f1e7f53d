//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

const samplesPerState = 5

// show writes a label set as k=v pairs; values longer than 20 bytes as their length.
func show(set *labels.Set) string {
	var parts []string
	for l := range set.All() {
		key, value := l.Key, l.Value
		if len(value) > 20 {
			value = fmt.Sprintf("(%d)", len(value))
		}
		if len(key) > 20 {
			key = fmt.Sprintf("(%d)", len(key))
		}
		parts = append(parts, key+"="+value)
	}
	return strings.Join(parts, " ")
}

func numbered(format string, n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(format, i, i))
	}
	return strings.Join(parts, " ")
}

// Every state of a label source that a target can be in, read from a running thread.
func TestLabelStates(t *testing.T) {
	program := buildTarget(t)
	const none, present, truncated, fault, invalid = labels.OutcomeNone, labels.OutcomePresent,
		labels.OutcomeTruncated, labels.OutcomeFault, labels.OutcomeInvalid
	ten := numbered("k%d=v%d", 10)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	keys := labels.NewKeyMap([]string{"n0", "n1", "n2", "n3", "n4"})
	cache := labels.NewCache(1 << 20)
	for _, tc := range []struct {
		state   string
		abi     labels.ABI
		outcome labels.Outcome
		set     string
	}{
		{"null", labels.ABIV1, none, ""},
		{"null", labels.ABIV0, none, ""},
		{"null", labels.ABIThreadContext, none, ""},
		{"count-0", labels.ABIV0, none, ""},
		{"count-0", labels.ABIV1, none, ""},
		{"labels-1", labels.ABIV0, present, "k0=v0"},
		{"labels-1", labels.ABIV1, present, "k0=v0"},
		{"labels-10", labels.ABIV0, present, ten},
		{"labels-10", labels.ABIV1, present, ten},
		{"labels-64", labels.ABIV1, present, "64"},
		{"labels-65", labels.ABIV1, truncated, "64"},
		{"holes", labels.ABIV1, present, "k199=v199 k299=v299 k399=v399 k99=v99"},
		{"only-holes", labels.ABIV0, none, ""},
		{"slots-600", labels.ABIV1, truncated, "64"},
		{"null-value", labels.ABIV1, present, "k1=v1"},
		{"empty", labels.ABIV1, present, "="},
		{"value-1024", labels.ABIV1, present, "k=(1024)"},
		{"value-2000", labels.ABIV1, truncated, "k=(1024)"},
		{"key-300", labels.ABIV0, truncated, "(256)=v"},
		{"value-2-60", labels.ABIV1, truncated, "k=(1024)"},
		{"section-full", labels.ABIV1, truncated, "k=(1000)"},
		{"count-2-63", labels.ABIV1, fault, ""},
		{"unmapped-set", labels.ABIV1, fault, ""},
		{"kernel-set", labels.ABIV1, fault, ""},
		{"unmapped-storage", labels.ABIV0, fault, ""},
		{"null-storage", labels.ABIV1, invalid, ""},
		{"unmapped-key", labels.ABIV1, fault, ""},
		{"kernel-value", labels.ABIV1, fault, ""},
		{"fault-in-second", labels.ABIV1, fault, ""},
		{"context", labels.ABIThreadContext, present, "link"},
		{"context-attrs-5", labels.ABIThreadContext, present, "link " + numbered("n%d=a%d", 5)},
		{"context-updating", labels.ABIThreadContext, labels.OutcomeUpdating, ""},
		{"context-garbage", labels.ABIThreadContext, invalid, ""},
		{"context-attrs-3000", labels.ABIThreadContext, truncated, "link"},
		{"context-past-end", labels.ABIThreadContext, fault, ""},
		{"context-at-end", labels.ABIThreadContext, present, "link n0="},
		{"context-unmapped", labels.ABIThreadContext, fault, ""},
	} {
		t.Run(fmt.Sprintf("%s/%s", tc.state, tc.abi), func(t *testing.T) {
			tgt := startTarget(t, program, tc.state)
			offset := map[labels.ABI]int64{
				labels.ABIV0: tgt.offsetV0, labels.ABIV1: tgt.offsetV1, labels.ABIThreadContext: tgt.offsetCtx,
			}[tc.abi]
			id := identify(t, s, tgt.pid)
			require.NoError(t, s.SetLabelSources(id, []LabelSource{{ABI: uint8(tc.abi), Offset: offset}}))
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || !r.Known {
					return false
				}
				require.Equal(t, id, r.Process)
				d := cache.Decode(keys, r.Labels)
				require.Equal(t, []labels.Read{{ABI: tc.abi, Outcome: tc.outcome}}, d.Reads)
				got := show(d.Set)
				if tc.set == "64" {
					require.Equal(t, 64, d.Set.Len())
					got = tc.set
				}
				if d.Link != (labels.Link{}) {
					require.EqualValues(t, 0xa0, d.Link.TraceID[0])
					require.EqualValues(t, 0xb7, d.Link.SpanID[7])
					got = strings.TrimSpace("link " + got)
				}
				require.Equal(t, tc.set, got)
				require.Equal(t, tc.outcome == truncated, d.Set.Truncated())
				if tc.state == "null-value" {
					require.EqualValues(t, 1, d.Counts.NullValues)
				}
				seen++
				return seen == samplesPerState
			})
		})
	}
}

// The same variables reached through the DTV, and module ids that this thread can't have.
func TestLabelsThroughDTV(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "labels-1")
	id := identify(t, s, tgt.pid)
	// glibc gives the executable module 1; its block ends at the thread pointer on
	// x86-64 (variant II), rounded to its alignment. The offset of the variable in the
	// block is therefore found by trying: only one can be right.
	require.NoError(t, s.Start())
	cache := labels.NewCache(1 << 20)
	outcomeOf := func(src LabelSource) (labels.Outcome, string) {
		require.NoError(t, s.SetLabelSources(id, []LabelSource{{ABI: uint8(labels.ABINone)}, src}))
		var out labels.Outcome
		var set string
		readUntil(t, s, func(r *Record) bool {
			d := cache.Decode(nil, r.Labels)
			if r.PID != tgt.pid || len(d.Reads) != 2 {
				return false
			}
			out, set = d.Reads[1].Outcome, show(d.Set)
			return true
		})
		// the next state must not be mistaken for this one
		require.NoError(t, s.SetLabelSources(id, nil))
		readUntil(t, s, func(r *Record) bool { return r.PID == tgt.pid && len(r.Labels) == 0 })
		return out, set
	}
	glibc := LabelSource{ABI: uint8(labels.ABIV1), Kind: uint8(profilerTlsKindTLS_KIND_DTV_GLIBC), Module: 1}
	found := false
	for offset := int64(0); offset < 64 && !found; offset += 8 {
		src := glibc
		src.Offset = offset
		_, set := outcomeOf(src)
		found = set == "k0=v0"
	}
	require.True(t, found, "no offset in module 1 gives the labels")

	far := glibc
	far.Module = 1 << 40
	out, _ := outcomeOf(far)
	require.Equal(t, labels.OutcomeNotAllocated, out)
	zero := glibc
	zero.Module = 0
	out, _ = outcomeOf(zero)
	require.Equal(t, labels.OutcomeInvalid, out)
	young := glibc
	young.Generation = 1 << 40
	out, _ = outcomeOf(young)
	require.Equal(t, labels.OutcomeStaleModule, out)
}

// Limits set by the user lower the built-in ones.
func TestLabelLimits(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, MaxLabels: 3, MaxKeyBytes: 1, MaxValueBytes: 1})
	tgt := startTarget(t, program, "labels-10")
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []LabelSource{{ABI: uint8(labels.ABIV1), Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	cache := labels.NewCache(1 << 20)
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		d := cache.Decode(nil, r.Labels)
		require.True(t, d.Set.Truncated())
		require.Equal(t, "k=v", show(d.Set), "three labels cut to the same key: the first wins")
		require.EqualValues(t, 3, d.Counts.TruncatedKeys)
		return true
	})
}

// A worker that the kernel made for io_uring is a thread of the process with a
// copy of its maker's thread pointer; the maker's labels are not its own.
func TestKernelMadeWorkerHasNoLabels(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "io-worker")
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []LabelSource{{ABI: uint8(labels.ABIV1), Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	cache := labels.NewCache(1 << 20)
	workers, own := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		if r.TID != tgt.pid {
			require.Contains(t, string(r.Comm), "iou-wrk")
			require.Empty(t, r.Labels)
			require.Empty(t, r.UserFrames)
			require.NotEmpty(t, r.KernelFrames)
			workers++
		} else if show(cache.Decode(nil, r.Labels).Set) == "k0=v0" {
			own++
		}
		return workers >= samplesPerState && own > 0
	})
}

// A process without an entry, one with no sources, and a receiver that reads no
// labels: none of them may cost a read of user memory.
func TestNoSourcesNoReads(t *testing.T) {
	program := buildTarget(t)
	for _, tc := range []struct {
		name    string
		config  Config
		sources int
		set     bool
	}{
		{"unknown", Config{}, 0, false},
		{"no sources", Config{}, 0, true},
		{"labels off", Config{SkipLabels: true}, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.config.SamplesPerSecond, tc.config.RingBufferBytes = 997, 1<<20
			s := newSampler(t, tc.config)
			tgt := startTarget(t, program, "labels-1")
			if tc.set {
				src := LabelSource{ABI: uint8(labels.ABIV1), Offset: tgt.offsetV1}
				require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []LabelSource{src}[:tc.sources]))
			}
			require.NoError(t, s.Start())
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID == tgt.pid {
					require.Empty(t, r.Labels)
					require.NotEmpty(t, r.UserFrames)
					seen++
				}
				return seen == samplesPerState
			})
			c, err := s.Counters()
			require.NoError(t, err)
			require.Zero(t, c.SourceReads)
		})
	}
}
