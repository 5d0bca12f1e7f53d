//go:build linux

package process

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A batch waits until its processes are judged, or have ended; for one that cannot be judged
// it waits once.
func TestAwaitVerdicts(t *testing.T) {
	f := newFake(t, func(o *Options) {
		o.Selection = &Selection{Wants: func(info *Info) bool { return !strings.HasSuffix(info.Path, "unwanted") }}
	})
	f.image(1, 500, "/bin/wanted")
	f.image(2, 500, "/bin/unwanted")
	var list []*Process
	for pid := 1; pid <= 4; pid++ {
		list = append(list, f.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, pid, nobody, nil))
	}
	f.image(4, 500, "/bin/ended")
	f.HandleEvent(exit(record.ProcessID{TGID: 4, StartNs: 5e9}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.AwaitVerdicts(context.Background(), list, time.Hour)
	}()
	for waiting := true; waiting; {
		f.work() // the third has no /proc, and is found to have ended
		select {
		case <-done:
			waiting = false
		default:
		}
	}
	for i, want := range []Verdict{VerdictWanted, VerdictFiltered, VerdictUnknown, VerdictUnknown} {
		require.Equal(t, want, list[i].Info().Verdict, fmt.Sprint(i+1))
	}

	f.image(5, 500, "/bin/wanted")
	hangs := []*Process{f.Lookup(record.ProcessID{TGID: 5, StartNs: 5e9}, 5, nobody, nil)}
	f.AwaitVerdicts(context.Background(), hangs, time.Millisecond)
	f.AwaitVerdicts(context.Background(), hangs, time.Hour)
	require.Equal(t, VerdictUnknown, hangs[0].Info().Verdict)

	// It ends while it is waited for, and nobody has looked at it.
	f.image(6, 500, "/bin/ended")
	ends := f.Lookup(record.ProcessID{TGID: 6, StartNs: 5e9}, 6, nobody, nil)
	done = make(chan struct{})
	go func() {
		defer close(done)
		f.AwaitVerdicts(context.Background(), []*Process{ends}, time.Hour)
	}()
	require.Eventually(t, func() bool {
		f.mu.RLock()
		defer f.mu.RUnlock()
		return ends.awaited
	}, time.Minute, time.Millisecond)
	f.HandleEvent(exit(record.ProcessID{TGID: 6, StartNs: 5e9}))
	<-done
}
