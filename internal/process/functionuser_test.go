//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// slowRuntime has functions that take a millisecond of CPU time each.
type slowRuntime struct {
	*fakeRuntime
	f    *fake
	read map[*Process]int
	of   *Process
}

func (r *slowRuntime) Open(langruntime.Memory, uint64) (langruntime.Process, error) { return r, nil }

func (r *slowRuntime) Read(langruntime.Memory, uint64, uint32) (langruntime.Function, error) {
	r.f.advance(ms)
	r.read[r.of]++
	return largeFunction(1), nil
}

// slowFake is a table whose processes have slow runtimes, with half a CPU for work in the background.
func slowFake(t *testing.T) (f *fake, start func(pid int, uid uint32) *Process, read map[*Process]int) {
	f = newFake(t)
	f.opts.CPU = budget.NewCPU(0.5, f.clock.Load)
	f.opts.cpuTime = f.clock.Load
	f.opts.Runtimes[record.RuntimeCPython] = true
	read = map[*Process]int{}
	start = func(pid int, uid uint32) *Process {
		f.image(pid, 500, "/bin/some")
		p := f.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, pid, nobody, nil)
		f.work()
		runtime := &slowRuntime{&fakeRuntime{kind: record.RuntimeCPython}, f, read, p}
		info := *p.Info()
		info.Mappings = append(info.Mappings, runtime.mapping("some"))
		info.Mappings[len(info.Mappings)-1].File.Facts().Runtime = runtime
		p.info.Store(&info)
		f.WantFunctions(p, uid, stack(0, 1))
		return p
	}
	return f, start, read
}

// However many processes a user has, and however many functions these, reading them takes no more than
// the user's share of CPU time, beside what was saved up. Those of others do not wait.
func TestFunctionsShareOfUser(t *testing.T) {
	const hostileUser, other, spell = 1000, 1001, time.Minute
	f, start, read := slowFake(t)
	began, next := f.now(), 1
	processes := []*Process{start(1, hostileUser), start(2, hostileUser), start(3, hostileUser)}
	total := func() int { return read[processes[0]] + read[processes[1]] + read[processes[2]] }
	atOnce := 0
	for f.now() < began+int64(spell) {
		for _, p := range processes {
			if len(p.functions.wanted) == 0 {
				f.WantFunctions(p, hostileUser, stack(next, functionsAtOnce))
				next += functionsAtOnce
			}
		}
		f.work()
		f.advance(ms)
		if f.now() < began+500*ms {
			atOnce = total()
		}
	}
	require.Greater(t, atOnce, 200, "what was saved up")
	share := (spell + userFunctionsSaved).Milliseconds() / 2 / userFunctionsPart
	require.InDelta(t, share, total(), float64(share)/20)
	require.Greater(t, f.functionUsers[hostileUser].paidNs, f.now())

	p := start(4, other)
	require.True(t, f.ReadsFunctions(p))
	f.work()
	require.Equal(t, 1, read[p])

	// A new process has no share of its own, and a user whose processes have gone no new one.
	f.functionUsers[hostileUser].paidNs = f.now() + int64(functionsSoon) + 1
	p = start(5, hostileUser)
	require.False(t, f.ReadsFunctions(p), "that takes too long for a batch")
	f.advance(int64(functionsSoon))
	f.work()
	require.Zero(t, read[p])
	f.mu.Lock()
	for _, p := range append(processes, p) {
		f.letGo(p)
	}
	f.mu.Unlock()
	owing := f.functionUsers[hostileUser]
	start(6, 1002)
	f.work()
	p = start(7, hostileUser)
	require.Same(t, owing, f.functionUsers[hostileUser])
	owing.paidNs, owing.turnNs = f.now()+1, 0
	f.work()
	require.Zero(t, read[p])
	f.advance(1)
	f.work()
	require.Equal(t, 1, read[p])

	f.mu.Lock()
	f.letGo(p)
	f.mu.Unlock()
	f.advance(int64(userFunctionsSaved + time.Second))
	start(8, 1003)
	require.NotContains(t, f.functionUsers, uint32(hostileUser))
	require.Contains(t, f.functionUsers, uint32(other))
}

// Other work that is done for a process brings no functions of a user who has to wait.
func TestOtherWorkBringsNoFunctions(t *testing.T) {
	f, start, read := slowFake(t)
	p := start(1, 1000)
	f.work()
	require.Equal(t, 1, read[p])
	f.functionUsers[1000].paidNs = f.now() + 10*ms
	f.WantFunctions(p, 1000, stack(1, 1))
	for range 3 {
		f.jobs.schedule(p, workUnwind, urgent)
		require.Equal(t, 1, f.work())
		require.Equal(t, 1, read[p])
	}
	f.advance(10 * ms)
	f.work()
	require.Equal(t, 2, read[p])
}

// Of a user's processes that wait, one after the other is taken; each keeps its turn.
func TestFunctionsTurns(t *testing.T) {
	f, start, read := slowFake(t)
	var processes []*Process
	for pid := range 50 {
		processes = append(processes, start(pid+1, 1000))
		f.functionUsers[1000].paidNs = f.now() + 100*ms
	}
	f.work()
	for i, p := range processes {
		f.jobs.schedule(p, workUnwind, urgent)
		require.Equal(t, 1, f.work())
		require.Equal(t, f.functionUsers[1000].paidNs+int64(i)*int64(functionsPiece), p.dueNs)
	}
	for range 50 {
		f.advance(100 * ms)
		f.work()
	}
	for _, p := range processes {
		require.Equal(t, 1, read[p])
	}

	f.advance(int64(time.Hour))
	f.chargeFunctions(processes[0], 0)
	require.Equal(t, f.now()-int64(userFunctionsSaved), f.functionUsers[1000].paidNs, "so much is saved up")
}
