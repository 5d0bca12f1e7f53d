//go:build linux && (amd64 || arm64)

package bpf

import (
	"bufio"
	"io"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A process that is filtered gives no record, is counted, and comes back when it is
// wanted again. Without SelectTargets, nothing of that happens.
func TestFilter(t *testing.T) {
	program := buildTarget(t)
	for name, selects := range map[string]bool{"selecting": true, "not selecting": false} {
		t.Run(name, func(t *testing.T) {
			s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, SelectTargets: selects})
			out, in := startTarget(t, program, "labels-1"), startTarget(t, program, "labels-1")
			id := identify(t, s, out.pid)
			require.NoError(t, s.Filter(id))
			require.NoError(t, s.Start())
			ofOut, ofIn := 0, 0
			readUntil(t, s, func(r *Record) bool {
				switch r.PID {
				case out.pid:
					ofOut++
				case in.pid:
					ofIn++
				}
				return ofIn >= 100 && (selects || ofOut > 0)
			})
			c, err := s.Counters()
			require.NoError(t, err)
			if !selects {
				require.Zero(t, c.FilteredTarget)
				return
			}
			require.Zero(t, ofOut, "of a process that is filtered")
			require.NotZero(t, c.FilteredTarget)
			require.NoError(t, s.SetLabelSources(id, nil))
			readUntil(t, s, func(r *Record) bool { return r.PID == out.pid })
			// What another process says of itself does not count.
			other, entry := id, record.ProcessEntry{Filtered: true}
			other.ExecID++
			sealProcess(&other, &entry)
			require.NoError(t, s.objs.Processes.Put(&id, &entry))
			skipOlder(t, s)
			readUntil(t, s, func(r *Record) bool { return r.PID == out.pid })
			records := uint64(0)
			drain(t, s, func(*Record) { records++ })
			c, err = s.Counters()
			require.NoError(t, err)
			require.Equal(t, c.Hits, c.Submitted+c.FilteredIdle+c.FilteredTarget+c.DroppedRingFull+c.DroppedUserShare+c.DroppedInternal)
		})
	}
}

// Switches of a process that is filtered are not recorded.
func TestFilterSwitches(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, SelectTargets: true})
	o, err := s.OffCPU(OffCPUConfig{Threshold: 1, RingBufferBytes: 8 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	sleeper := func() (pid uint32, sleeps func()) { // it waits for its child
		cmd := exec.Command("/bin/sh", "-c", "while read go; do sleep 0.02; echo awake; done")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		said := bufio.NewScanner(stdout)
		return uint32(cmd.Process.Pid), func() {
			_, err := io.WriteString(stdin, "go\n")
			require.NoError(t, err)
			require.True(t, said.Scan())
		}
	}
	require.NoError(t, s.Follow())
	out, outSleeps := sleeper()
	in, inSleeps := sleeper()
	require.NoError(t, s.Filter(awaitExec(t, s, int(out))))
	require.NoError(t, o.Start())
	for range 3 {
		outSleeps()
		inSleeps()
	}
	seen := map[uint32]int{}
	c := drainSwitches(t, o, func(sw *Switch) {
		var r Record
		if !sw.Back && r.Parse(sw.Raw) == nil {
			seen[r.PID]++
		}
	})
	require.Zero(t, seen[out])
	require.NotZero(t, seen[in])
	require.NotZero(t, c.FilteredTarget)
}

// A forked child is filtered with its parent, unless each is to be judged for itself.
func TestFilterFork(t *testing.T) {
	for name, judge := range map[string]bool{"inherits": false, "is judged": true} {
		t.Run(name, func(t *testing.T) {
			s := newSampler(t, Config{
				SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, SelectTargets: true, JudgeForked: judge,
			})
			require.NoError(t, s.Follow())
			sh := exec.Command("/bin/sh", "-c", "read go; (read x); true")
			stdin, err := sh.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, sh.Start())
			require.NoError(t, s.Filter(awaitExec(t, s, sh.Process.Pid)))
			_, err = stdin.Write([]byte("\n"))
			require.NoError(t, err)
			for ev := (record.Event{}); ev.Kind != record.EventFork || ev.Parent.TGID != uint32(sh.Process.Pid); {
				require.NoError(t, readEvent(s, &ev))
				if ev.Kind == record.EventFork && ev.Parent.TGID == uint32(sh.Process.Pid) {
					key := ev.Process
					var entry record.ProcessEntry
					require.NoError(t, s.objs.Processes.Lookup(&key, &entry))
					require.Equal(t, !judge, entry.Filtered)
				}
			}
			require.NoError(t, stdin.Close())
			require.NoError(t, sh.Wait())
		})
	}
}
