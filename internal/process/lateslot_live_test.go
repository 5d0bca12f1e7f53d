//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// hidden is memory that cannot be read at times.
type hidden struct {
	tlsresolve.Memory
	now *bool
}

func (h hidden) ReadAt(p []byte, addr uint64) error {
	if *h.now {
		return procfs.ErrFault
	}
	return h.Memory.ReadAt(p, addr)
}

// A slot that has its value only when no retry is left is confirmed soon after it was seen, and once.
func TestLateSlotIsConfirmed(t *testing.T) {
	lib := target.Library(t, target.DefineV1, "custom_labels_current_set")
	p := start(t, compile(t, "p", target.Common+`int main(void) { puts("1"); fflush(stdout); await(); return 0; }`, "-Wl,--no-as-needed", lib))
	var n int
	p.Line(&n)
	hides := true
	f := newFake(t, func(o *Options) {
		o.FS = procfs.FS{Root: "/proc"}
		o.RescanInterval = quiet
		o.memory = func(pid int) tlsresolve.Memory { return hidden{procfs.Memory{PID: pid}, &hides} }
	})
	f.HandleEvent(p.exists())
	for range 2 * len(retryDelays) {
		f.work()
		f.advance(int64(retryDelays[len(retryDelays)-1]) + int64(time.Second))
	}
	proc := f.process(p.id())
	require.Zero(t, f.work(), "all retries have been made")
	state := func() labelsource.State {
		require.Len(t, proc.Info().Sources, 1)
		return proc.Info().Sources[0].State
	}
	require.NotEqual(t, labelsource.Active, state())

	hides = false
	f.jobs.schedule(proc, workReread, urgent)
	require.Equal(t, 1, f.work())
	require.Equal(t, labelsource.NotRelocated, state(), "it is new")
	f.advance(int64(rereadGap) - 1)
	require.Zero(t, f.work())
	f.advance(int64(rereadGap))
	require.Equal(t, 1, f.work())
	require.Equal(t, labelsource.Active, state())
	f.advance(int64(time.Minute))
	require.Zero(t, f.work())
}
