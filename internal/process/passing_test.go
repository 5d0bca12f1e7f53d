//go:build linux

package process

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Processes that come and go unseen never enter the table; those of which more is told do.
func TestPassing(t *testing.T) {
	id := func(n int) record.ProcessID { return record.ProcessID{TGID: uint32(n), StartNs: uint64(n), ExecID: 1} }
	executed := func(n int) record.ProcessID { id := id(n); id.ExecID++; return id }
	fork := func(n, parent int) record.Event {
		return record.Event{Kind: record.EventFork, Process: id(n), Parent: id(parent), PID: n}
	}
	exec := func(n int, program record.FileKey) record.Event {
		return record.Event{Kind: record.EventExec, Process: executed(n), PID: n, Program: program, Path: "/bin/p"}
	}
	told := func(kind record.EventKind, id record.ProcessID) record.Event {
		return record.Event{Kind: kind, Process: id, PID: int(id.TGID)}
	}
	kernel := fork(1, 9)
	kernel.KernelThread = true
	known, unknown := record.FileKey{Inode: 1}, record.FileKey{Inode: 2}
	exit := record.EventExit
	for name, tc := range map[string]struct {
		events  []record.Event
		entered []record.ProcessID // those that the table knows afterwards
		begins  bool
	}{
		"forked":              {[]record.Event{fork(1, 9), told(exit, id(1))}, nil, false},
		"executed":            {[]record.Event{fork(1, 9), exec(1, known), told(exit, executed(1))}, nil, false},
		"two":                 {[]record.Event{fork(1, 9), fork(2, 9), told(exit, id(2)), told(exit, id(1))}, nil, false},
		"child passes":        {[]record.Event{fork(1, 9), fork(2, 1), told(exit, id(1)), exec(2, known), told(exit, executed(2))}, nil, false},
		"kernel thread":       {[]record.Event{kernel, told(exit, id(1))}, []record.ProcessID{id(1)}, true},
		"runs on":             {[]record.Event{fork(1, 9), exec(1, known)}, []record.ProcessID{id(1), executed(1)}, true},
		"only exec":           {[]record.Event{exec(1, known), told(exit, executed(1))}, []record.ProcessID{executed(1)}, true},
		"program is new":      {[]record.Event{fork(1, 9), exec(1, unknown), told(exit, executed(1))}, []record.ProcessID{id(1), executed(1)}, true},
		"sampled":             {[]record.Event{fork(1, 9), told(record.EventSampled, id(1)), told(exit, id(1))}, []record.ProcessID{id(1)}, true},
		"sampled at its end":  {[]record.Event{fork(1, 9), told(exit, id(1)), told(record.EventSampled, id(1))}, []record.ProcessID{id(1)}, true},
		"publishes a context": {[]record.Event{fork(1, 9), told(record.EventContextNamed, id(1)), told(exit, id(1))}, []record.ProcessID{id(1)}, true},
		"child runs on":       {[]record.Event{fork(1, 9), fork(2, 1), told(exit, id(1))}, []record.ProcessID{id(1), id(2)}, true},
		"child is sampled": {
			[]record.Event{fork(1, 9), fork(2, 1), told(record.EventSampled, id(2)), told(exit, id(2)), told(exit, id(1))},
			[]record.ProcessID{id(1), id(2)}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.programs.without[known] = enoughWithout
			require.Equal(t, tc.begins, f.HandleEvents(tc.events))
			var entered []record.ProcessID
			for id := range f.byID {
				entered = append(entered, id)
			}
			slices.SortFunc(entered, func(a, b record.ProcessID) int { return int(a.TGID+uint32(a.ExecID)) - int(b.TGID+uint32(b.ExecID)) })
			require.Equal(t, tc.entered, entered)
			require.False(t, f.HandleEvents(nil))
		})
	}

	// A sample that was faster than the events.
	f := newFake(t)
	f.Lookup(id(1), 1, nobody, []byte("comm"))
	require.True(t, f.HandleEvents([]record.Event{fork(1, 9), told(exit, id(1))}))
	require.True(t, f.byID[id(1)].exited)

	// Of samples of threads that wait nothing is told.
	f = newFake(t, func(o *Options) { o.OffCPU = true })
	require.True(t, f.HandleEvents([]record.Event{fork(1, 9), told(exit, id(1))}))
	require.Len(t, f.byID, 1)
}
