//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// rescanned has the periodic pass come, and returns how many processes were looked at.
func (f *fake) rescanned() int {
	f.rescan(time.Second)
	f.advance(int64(2 * time.Second))
	return f.work()
}

// A process that nobody samples is left alone, and is looked at when it is sampled again.
func TestIdleProcessIsLeftAlone(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/old")
	f.HandleEvent(exists(image1))
	f.work()
	require.Zero(t, f.rescanned(), "never sampled")

	p := f.Lookup(image1, 42, nobody, nil)
	require.NotZero(t, f.work(), "it was passed over")
	require.Equal(t, 1, f.rescanned(), "sampled since the last pass")
	f.Lookup(image1, 42, nobody, nil)
	f.advance(int64(time.Second))
	require.Zero(t, f.work(), "it was looked at by the pass")
	require.Equal(t, 1, f.rescanned())
	require.Zero(t, f.rescanned(), "idle")

	f.write(42, "maps", "10000-20000 r-xp 00000000 00:00 0 [one]\n30000-40000 r-xp 00000000 00:00 0 [two]\n")
	f.Lookup(image1, 42, nobody, nil)
	f.advance(int64(time.Second))
	require.Equal(t, 1, f.work())
	require.Len(t, p.Info().Mappings, 2)
	f.Lookup(image1, 42, nobody, nil)
	f.advance(int64(time.Second))
	require.Zero(t, f.work(), "once for each pause")
}

// The end of an idle process is noticed although its event was lost.
func TestIdleProcessEnds(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/old")
	f.HandleEvent(exists(image1))
	f.work()
	f.remove(42)
	require.NotZero(t, f.rescanned())
	require.True(t, f.process(image1).exited)
	require.EqualValues(t, 1, f.Stats().Lost)
	require.Equal(t, []record.ProcessID{image1}, f.published.running, "no program at its end has taken back what it began with")
}

// Of many idle processes each pass asks for some, of each sooner or later.
func TestManyIdleProcessesEnd(t *testing.T) {
	f := newFake(t)
	const n = 10 * existsAtOnce
	for pid := 1; pid <= n; pid++ {
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	for _, p := range f.byPID { // as if it had been looked at
		f.jobs.cancel(p)
	}
	for pass := 0; len(f.byPID) > 0; pass++ {
		require.Less(t, pass, 100)
		require.LessOrEqual(t, f.rescanned(), 2*existsAtOnce)
	}
	require.EqualValues(t, n, f.Stats().Lost)
}

// What is not wanted is judged anew by each pass: no sample of it comes.
func TestFilteredIsJudgedAgain(t *testing.T) {
	f := newFake(t, selecting(wantsUID(0)))
	f.image(42, 500, "/bin/old")
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	require.Equal(t, VerdictFiltered, p.Info().Verdict)
	f.setUID(42, "0")
	require.Equal(t, 1, f.rescanned())
	require.Equal(t, VerdictWanted, p.Info().Verdict)
}
