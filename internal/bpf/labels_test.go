//go:build linux && (amd64 || arm64)

package bpf

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/labelstates"
)

const samplesPerState = 5

// outcomeOfBlock is where a label block has it: struct label_block of src/record.h.
const outcomeOfBlock = 1

func show(set *labels.Set) string {
	var shown string
	for l := range set.All() {
		shown = labelstates.Show(shown, l.Key, l.Value)
	}
	return shown
}

// Every state of a label source that a target can be in, read from a running thread.
func TestLabelStates(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	keys := labels.NewKeyMap(labelstates.Names())
	compared := 0
	anomalies := map[string]labels.Anomaly{
		"null-value": labels.AnomalyNullValue, "key-300": labels.AnomalyTruncatedKey, "value-2000": labels.AnomalyTruncatedValue,
	}
	for _, tc := range labelstates.All() {
		t.Run(tc.Name+"/"+tc.ABI, func(t *testing.T) {
			tgt := startTarget(t, program, tc.Name)
			var abi record.ABI
			for abi.String() != tc.ABI {
				abi++
			}
			offset := [record.NumABIs]int64{
				record.ABIV0: tgt.offsetV0, record.ABIV1: tgt.offsetV1, record.ABIThreadContext: tgt.offsetCtx,
				record.ABIThreadContextNodeJS: tgt.offsetNode, record.ABIGo: tgt.offsetGo,
			}[abi]
			id := identify(t, s, tgt.pid)
			src := record.LabelSource{
				ABI: abi, Offset: offset, V8Field: labelstates.V8Field, V8MapType: labelstates.V8MapType,
				Go: record.GoLayout(labelstates.GoLayout(tc.Name)), GoMap: tc.GoMap,
			}
			if tc.GoRegister {
				src.Kind = record.TLSRegister
			}
			require.NoError(t, s.SetLabelSources(id, []record.LabelSource{src}))
			seen := 0
			readUntil(t, s, func(r *Record) bool {
				if r.PID != tgt.pid || len(r.Labels) == 0 {
					return false
				}
				require.Equal(t, id, r.Process)
				d := labels.Decode(keys, r.Labels)
				require.Len(t, d.Reads, 1)
				require.Equal(t, abi, d.Reads[0].ABI)
				require.Equal(t, tc.Outcome, d.Reads[0].Outcome.String())
				got := show(d.Set)
				if tc.Many != 0 {
					require.Equal(t, tc.Many, d.Set.Len())
					got = ""
				}
				if d.Link != (labels.Link{}) {
					require.EqualValues(t, 0xa0, d.Link.TraceID[0])
					require.EqualValues(t, 0xb7, d.Link.SpanID[7])
					got = strings.TrimSpace("link " + got)
				}
				require.Equal(t, tc.Set, got)
				require.Equal(t, tc.Outcome == "truncated", d.Set.Truncated())
				// The programs say so themselves, whatever their reader makes of what they have copied.
				require.Equal(t, tc.Outcome, record.Outcome(r.Labels[outcomeOfBlock]).String())
				if anomaly, ok := anomalies[tc.Name]; ok {
					require.EqualValues(t, 1, d.Counts[anomaly])
				}
				seen++
				return seen == samplesPerState
			})
			compared += seen
		})
	}
	testutil.ReportLabelAssertions(t.Name(), compared)
}

// What was read for one sample is not taken for the next one.
func TestLabelsAreReadAnew(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "strings-changing")
	pin(t, tgt.pid, 0)
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []record.LabelSource{{ABI: record.ABIV0, Offset: tgt.offsetV0}}))
	require.NoError(t, s.Start())
	values := map[string]bool{}
	readUntil(t, s, func(r *Record) bool {
		if r.PID == tgt.pid && len(r.Labels) != 0 {
			values[show(labels.Decode(nil, r.Labels).Set)] = true
		}
		return len(values) >= samplesPerState
	})
}

// Nor for another source of the same sample: the labels of a Go map are collected where a set was read.
func TestMapBehindSet(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "strings-map-behind")
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []record.LabelSource{
		{ABI: record.ABIV1, Offset: tgt.offsetV1},
		{ABI: record.ABIGo, Offset: tgt.offsetGo, Go: record.GoLayout(labelstates.GoLayout("")), GoMap: true},
	}))
	require.NoError(t, s.Start())
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || len(r.Labels) == 0 {
			return false
		}
		set := labels.Decode(nil, r.Labels).Set
		require.Equal(t, 20, set.Len())
		for l := range set.All() {
			require.Equal(t, "v"+strings.TrimPrefix(l.Key, "k"), l.Value)
		}
		seen++
		return seen == samplesPerState
	})
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
	outcomeOf := func(src record.LabelSource) (record.Outcome, string) {
		require.NoError(t, s.SetLabelSources(id, []record.LabelSource{{ABI: record.ABINone}, src}))
		var out record.Outcome
		var set string
		readUntil(t, s, func(r *Record) bool {
			d := labels.Decode(nil, r.Labels)
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
	glibc := record.LabelSource{ABI: record.ABIV1, Kind: record.TLSDTVGlibc, Module: 1}
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
	require.Equal(t, record.OutcomeNotAllocated, out)
	zero := glibc
	zero.Module = 0
	out, _ = outcomeOf(zero)
	require.Equal(t, record.OutcomeInvalid, out)
	young := glibc
	young.Generation = 1 << 40
	out, _ = outcomeOf(young)
	require.Equal(t, record.OutcomeStaleModule, out)
}

// Sources are read in order into one section; of what finds no room in it, that is told. Labels
// leave room for the ids of a thread context behind them, also if they fill theirs to its last byte and other
// sources come in between.
func TestSourcesShareSection(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	tgt, exact := startTarget(t, program, "section-full-context"), startTarget(t, program, "section-exact")
	set := record.LabelSource{ABI: record.ABIV1, Offset: tgt.offsetV1}
	context := record.LabelSource{ABI: record.ABIThreadContext, Offset: tgt.offsetCtx}
	other := record.LabelSource{ABI: record.ABIV0, Offset: tgt.offsetV0}
	const present, truncated = record.OutcomePresent, record.OutcomeTruncated
	one := labelstates.Show("", "k", strings.Repeat("x", 1000))
	both := labelstates.Show(one, "l", strings.Repeat("x", 944))
	for _, tc := range []struct {
		target  target
		sources []record.LabelSource
		want    []record.Outcome
		set     string
	}{
		{tgt, []record.LabelSource{set, context}, []record.Outcome{truncated, present}, one},
		{tgt, []record.LabelSource{context, set}, []record.Outcome{present, truncated}, one},
		{exact, []record.LabelSource{set, context, context, context}, []record.Outcome{present, truncated, truncated, truncated}, both},
		{exact, []record.LabelSource{set, other, other, context}, []record.Outcome{present, truncated, truncated, truncated}, both},
	} {
		var changed unix.Timespec
		require.NoError(t, s.SetLabelSources(identify(t, s, tc.target.pid), tc.sources))
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &changed))
		seen := 0
		readUntil(t, s, func(r *Record) bool {
			if r.PID != tc.target.pid || r.TimeNs < uint64(changed.Nano()) {
				return false
			}
			d := labels.Decode(nil, r.Labels)
			require.Len(t, d.Reads, len(tc.want))
			for i, want := range tc.want {
				require.EqualValues(t, tc.sources[i].ABI, d.Reads[i].ABI)
				require.Equal(t, want.String(), d.Reads[i].Outcome.String())
			}
			require.NotEqual(t, labels.Link{}, d.Link)
			require.Equal(t, tc.set, show(d.Set))
			seen++
			return seen == samplesPerState
		})
	}
	c, err := s.Counters()
	require.NoError(t, err)
	require.GreaterOrEqual(t, c.SourceReads, uint64(2*2*samplesPerState))
}

// Equal labels are equal bytes: what another process has left is no part of them.
func TestLabelPadding(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	padded, other := startTarget(t, program, "context"), startTarget(t, program, "value-1024")
	pin(t, padded.pid, 0)
	pin(t, other.pid, 0)
	context := record.LabelSource{ABI: record.ABIThreadContext, Offset: padded.offsetCtx}
	set := record.LabelSource{ABI: record.ABIV1, Offset: other.offsetV1}
	require.NoError(t, s.SetLabelSources(identify(t, s, padded.pid), []record.LabelSource{context}))
	require.NoError(t, s.SetLabelSources(identify(t, s, other.pid), []record.LabelSource{set}))
	require.NoError(t, s.Start())
	followed, last := 0, uint32(0)
	readUntil(t, s, func(r *Record) bool {
		if r.CPU != 0 || len(r.Labels) == 0 {
			return false
		}
		if r.PID == padded.pid {
			require.Len(t, r.Labels, 16+28+4)
			require.Equal(t, make([]byte, 4), r.Labels[16+28:])
			if last == other.pid {
				followed++
			}
		}
		last = r.PID
		return followed == samplesPerState
	})
}

// A worker that the kernel made for io_uring is a thread of the process with a
// copy of its maker's thread pointer; the maker's labels are not its own.
func TestKernelMadeWorkerHasNoLabels(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "io-worker")
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []record.LabelSource{{ABI: record.ABIV1, Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	workers, own := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		if r.TID != tgt.pid {
			require.Empty(t, r.Labels)
			require.Empty(t, r.UserFrames)
			require.NotEmpty(t, r.KernelFrames)
			if strings.Contains(string(r.Comm), "iou-wrk") { // it begins with its maker's name
				workers++
			}
		} else if show(labels.Decode(nil, r.Labels).Set) == "k0=v0" {
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
				src := record.LabelSource{ABI: record.ABIV1, Offset: tgt.offsetV1}
				require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []record.LabelSource{src}[:tc.sources]))
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
