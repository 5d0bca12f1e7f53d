//go:build linux

package process

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A process begins with its start, or with its exec, in the time of the clock on the wall: by CLOCK_BOOTTIME, which goes
// on while the machine is suspended, as the kernel has it and not our time namespace.
func TestBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const offset = 7e9
		f := newFake(t)
		suspended := int64(0)
		f.opts.bootTime = func() int64 { return f.clock.Load() + bootLead + offset + suspended }
		f.bootOffset = offset
		f.clock.Store(20e9)
		age := func(p *Process) int64 { return int64(time.Since(f.Began(p))) }
		sinceStart := func() int64 { return f.clock.Load() + bootLead + suspended - int64(image1.StartNs) }

		p := f.Lookup(image1, 42, nobody, nil)
		require.Equal(t, sinceStart(), age(p))
		f.advance(ms)
		require.Equal(t, sinceStart(), age(p))

		f.HandleEvent(execAt(image2, f.now()-3*ms, "/bin/two"))
		executed := f.process(image2)
		require.Equal(t, 3*ms, age(executed))
		require.Equal(t, sinceStart(), age(p), "the image before")
		suspended = int64(time.Hour)
		f.advance(ms)
		require.Equal(t, 4*ms+suspended, age(executed))

		image3 := record.ProcessID{TGID: 42, StartNs: image1.StartNs, ExecID: 3}
		sampled := f.Lookup(image3, 42, nobody, nil)
		require.Equal(t, sinceStart(), age(sampled), "no event has told")
		f.HandleEvent(execAt(image3, f.now()-ms, "/bin/three"))
		require.Equal(t, ms, age(sampled))

		child := record.ProcessID{TGID: 43, StartNs: uint64(f.clock.Load() + bootLead + suspended), ExecID: 3}
		f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: image3, PID: 43, TimeNs: uint64(f.now())})
		require.Zero(t, age(f.process(child)), "it has executed nothing, but is younger")
	})
}
