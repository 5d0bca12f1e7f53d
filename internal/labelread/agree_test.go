//go:build linux && (amd64 || arm64)

package labelread_test

import (
	"debug/elf"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labelread"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/labelstates"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}

func abiOf(name string) record.ABI {
	for abi := range record.ABI(record.NumABIs) {
		if abi.String() == name {
			return abi
		}
	}
	panic(name)
}

// sourceOf is where a target in a state has its labels.
func sourceOf(tc *labelstates.State, target labelstates.Target) record.LabelSource {
	src := record.LabelSource{
		ABI: abiOf(tc.ABI), Offset: target.Offsets[tc.ABI],
		V8Field: labelstates.V8Field, V8MapType: labelstates.V8MapType,
		Go:    record.GoLayout(labelstates.GoLayout(tc.Name)),
		GoMap: tc.GoMap,
	}
	if tc.GoRegister {
		src.Kind = record.TLSRegister
	}
	return src
}

// look stops the first thread of a process and reads a source.
func look(t *testing.T, pid int, src record.LabelSource) labelread.Reading {
	t.Helper()
	var r labelread.Reading
	_, err := labelread.Stop(pid, pid, func(s labelread.Stopped) {
		require.False(t, s.Compat)
		r = labelread.Read(procfs.Memory{PID: pid}, machine(), s, src)
	})
	require.NoError(t, err)
	return r
}

// Every state of a label source, with the expectations for the BPF reader.
func TestLabelStates(t *testing.T) {
	program := labelstates.Build(t)
	keys := labels.NewKeyMap(labelstates.Names())
	for _, tc := range labelstates.All() {
		t.Run(tc.Name+"/"+tc.ABI, func(t *testing.T) {
			target := labelstates.Start(t, program, tc.Name)
			r := look(t, target.PID, sourceOf(&tc, target))
			require.Equal(t, tc.Outcome, r.Outcome.String(), "%v", r.Err)
			d := labels.Decode(keys, r.Block)
			require.Equal(t, []labels.Read{{ABI: abiOf(tc.ABI), Outcome: r.Outcome}}, d.Reads)
			var shown string
			for l := range d.Set.All() {
				shown = labelstates.Show(shown, l.Key, l.Value)
			}
			if tc.Many != 0 {
				require.Equal(t, tc.Many, d.Set.Len())
				shown = ""
			}
			if !d.Link.IsZero() {
				require.EqualValues(t, 0xa0, d.Link.TraceID[0])
				shown = strings.TrimSpace("link " + shown)
			}
			require.Equal(t, tc.Set, shown)
		})
	}
}

// Both readers give the same bytes for every state, and for locations that lead
// through the DTV or nowhere.
func TestAgreesWithBPF(t *testing.T) {
	testutil.RequireBPF(t)
	program := labelstates.Build(t)
	s, err := bpf.New(bpf.Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, ReadDelay: 5 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Start())
	for _, tc := range labelstates.All() {
		t.Run(tc.Name+"/"+tc.ABI, func(t *testing.T) {
			target := labelstates.Start(t, program, tc.Name)
			requireAgreement(t, s, target.PID, sourceOf(&tc, target))
		})
	}
	target := labelstates.Start(t, program, "labels-1")
	const huge = 1 << 40
	for name, at := range map[string]tlsresolve.Location{
		"module 1":     {Kind: record.TLSDTVGlibc, Module: 1},
		"far module":   {Kind: record.TLSDTVGlibc, Module: huge},
		"module 0":     {Kind: record.TLSDTVGlibc},
		"generation":   {Kind: record.TLSDTVGlibc, Module: 1, Generation: huge},
		"as musl":      {Kind: record.TLSDTVMusl, Module: huge},
		"unknown kind": {Kind: 7, Module: 1},
		"wild offset":  {Offset: -huge},
	} {
		t.Run(name, func(t *testing.T) { requireAgreement(t, s, target.PID, at.Source(record.ABIV1)) })
	}
}

func requireAgreement(t *testing.T, s *bpf.Sampler, pid int, src record.LabelSource) {
	t.Helper()
	var id record.ProcessID
	require.NoError(t, s.Scan(func(ev record.Event) {
		if ev.PID == pid {
			id = ev.Process
		}
	}))
	require.NoError(t, s.SetLabelSources(id, []record.LabelSource{src}))
	ours := look(t, pid, src)
	// What was sampled before the sources were set may still be on its way.
	since, err := monotonic()
	require.NoError(t, err)
	var r bpf.Record
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err := s.Read(&r)
		if errors.Is(err, bpf.ErrIdle) {
			_, err := s.UpdateCPUs() // another test may take some away for a while
			require.NoError(t, err)
			continue
		}
		require.NoError(t, err)
		if r.PID == uint32(pid) && len(r.Labels) > 0 && r.TimeNs > since {
			require.Equal(t, ours.Block, r.Labels, "%v", ours.Err)
			return
		}
	}
	t.Fatal("no sample of the target within a minute")
}
