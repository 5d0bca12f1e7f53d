//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// forks returns a new child of a process.
func (f *fake) forks(parent *Process, pid int) *Process {
	id := record.ProcessID{TGID: uint32(pid), StartNs: 5e9, ExecID: 1}
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: id, Parent: parent.ID(), PID: pid, TimeNs: uint64(f.now())})
	return f.process(id)
}

// presuming returns a process of a program whose processes begin with presumed label sources.
func presuming(t *testing.T) (*fake, *programs, *Process) {
	f, known := newProgramsFake(t)
	f.settle(f.executes(1, programA), atOffset(-8), false)
	f.advance(ms)
	return f, known, f.executes(2, programA)
}

// The child of a process that was not looked at yet has the label sources that its parent began
// with, and its own look says whether they are right, whatever its parent's does.
func TestForkBeforeLook(t *testing.T) {
	for name, tc := range map[string]struct {
		parent, child int64 // where labels are found
		want          Confirmation
	}{
		"right":           {-8, -8, Confirmed},
		"wrong":           {-8, -16, Refuted},
		"as it was begun": {-16, -8, Confirmed},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, parent := presuming(t)
			before := f.forks(parent, 3)
			require.Equal(t, 1, before.inherited)
			require.Equal(t, atOffset(-8), f.programs.presumed(before))
			ofChild := f.forks(before, 4)

			f.publish(parent, publishedSources, atOffset(tc.parent))
			f.settle(parent, atOffset(tc.parent), false)
			after := f.forks(parent, 5) // the kernel may have copied what was there before the look
			for _, p := range []*Process{before, ofChild, after} {
				require.Equal(t, 1, p.inherited)
				require.Equal(t, Unconfirmed, p.Confirm(), "it was not looked at")
				f.settle(p, atOffset(tc.child), false)
				require.Equal(t, tc.want, p.Confirm())
			}
		})
	}
}

// A child that was sampled before its fork was told is looked at once more, as the first look could
// settle nothing.
func TestSampledBeforeFork(t *testing.T) {
	f, _, parent := presuming(t)
	f.image(3, 500, "/bin/one")
	id := record.ProcessID{TGID: 3, StartNs: 5e9, ExecID: 1}
	f.Lookup(id, 3, nobody, nil)
	f.jobs.cancel(parent)
	f.work()
	child := f.forks(parent, 3)
	require.Equal(t, forkSettle, time.Duration(child.dueNs-f.now()))
	f.settle(child, atOffset(-8), false)
	require.Equal(t, Confirmed, child.Confirm())

	other := f.executes(4, record.FileKey{Inode: 8})
	f.Lookup(record.ProcessID{TGID: 5, StartNs: 5e9, ExecID: 1}, 5, nobody, nil)
	f.jobs.cancel(f.forks(other, 5))
	require.Zero(t, f.forks(other, 5).work, "nothing was presumed")
}

// A child may load what its parent has not. Processes that execute the program speak for it.
func TestForkedSaysNothingOfProgram(t *testing.T) {
	f, known, parent := presuming(t)
	child := f.forks(parent, 3)
	f.settle(child, append(atOffset(-8), atOffset(-16)...), false)
	require.Equal(t, Refuted, child.Confirm())
	require.Equal(t, atOffset(-8), known.sources[programA])
	require.Equal(t, atOffset(-8), f.programs.presumed(f.executes(4, programA)))

	clear(f.programs.without)
	for pid := range enoughWithout {
		f.HandleEvent(exit(f.forks(parent, 10+pid).ID()))
	}
	require.Empty(t, f.programs.without)
}

// What events tell of a process is known, too, if it was sampled before they came.
func TestSampledBeforeItsEvents(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	parent := f.Lookup(image1, 42, nobody, nil)
	f.work()
	child := record.ProcessID{TGID: 43, StartNs: 6_000_000_001, ExecID: 1}
	p := f.Lookup(child, 43, nobody, []byte("comm"))
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: parent.id, PID: 43, TimeNs: uint64(f.now())})
	require.True(t, p.Info().Loaded)
	require.Equal(t, 43, p.Info().PID)
	require.Equal(t, parent.Info().Mappings, p.Info().Mappings)
	require.Equal(t, "one", p.Info().Name)

	executed := child
	executed.ExecID++
	p = f.Lookup(executed, 43, nobody, []byte("comm"))
	f.HandleEvent(execAt(executed, f.now(), "/bin/two"))
	require.Equal(t, "two", p.Info().Name)
	require.Equal(t, "/bin/two", p.Info().Path)
}
