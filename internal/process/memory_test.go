//go:build linux

package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// manyMappings of code, as a program with generated code has them.
func manyMappings(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%x-%x r-xp 00000000 00:00 0 [anon:code%d]\n", 0x10000*(i+1), 0x10000*(i+1)+0x1000, i)
	}
	return b.String()
}

// Processes are counted while they are there, and nothing is left when they have gone.
func TestMemoryAccount(t *testing.T) {
	memory := budget.NewMemory(1 << 30)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	ids := make([]record.ProcessID, 100)
	for i := range ids {
		ids[i] = record.ProcessID{TGID: uint32(i + 1), StartNs: 5e9}
		f.image(i+1, 500, "/bin/one")
		f.write(i+1, "maps", manyMappings(50))
		f.HandleEvent(exists(ids[i]))
	}
	admitted := memory.Part(budget.OfProcesses)
	require.NotZero(t, admitted)
	f.work()
	require.Greater(t, memory.Part(budget.OfProcesses), admitted+2*100*50*int64(mappingBytes))
	held := memory.Part(budget.OfProcesses)
	f.advance(int64(defaultRescanInterval))
	f.rereadAll(f.now(), time.Second)
	f.advance(int64(time.Second))
	f.work()
	require.Equal(t, held, memory.Part(budget.OfProcesses), "nothing has changed")
	for _, id := range ids {
		f.HandleEvent(exit(id))
	}
	f.EndInterval()
	f.EndInterval()
	require.Zero(t, memory.Part(budget.OfProcesses))
	require.Zero(t, f.Stats().Processes)
}

// When processes take their part of all memory, further ones are known by name alone; none
// has what is another's, those before keep all, and all is read when there is room again.
func TestMemoryReduces(t *testing.T) {
	memory := budget.NewMemory(4 << 20)
	rec := &rowsRecorder{mappings: map[record.ProcessID][]record.UnwindMapping{}}
	f := newFake(t, func(o *Options) { o.Memory, o.Unwinder = memory, rec })
	const n = 60
	for pid := 1; pid <= n; pid++ {
		f.image(pid, 500, fmt.Sprintf("/bin/p%d", pid))
		f.write(pid, "maps", manyMappings(150))
		p := f.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, pid, nobody, nil)
		f.work()
		require.Equal(t, fmt.Sprintf("p%d", pid), p.Info().Name)
		require.EqualValues(t, 1000, p.Info().UID)
	}
	whole, reduced := 0, 0
	for pid := 1; pid <= n; pid++ {
		id := record.ProcessID{TGID: uint32(pid), StartNs: 5e9}
		p := f.process(id)
		_, listed := rec.mappings[id]
		if len(p.Info().Mappings) == 0 {
			reduced++
			require.False(t, listed, "no list, rather than one that says that all is known")
			continue
		}
		whole++
		require.Zero(t, reduced, "the first ones keep what they have")
		require.True(t, listed)
	}
	require.NotZero(t, whole)
	require.NotZero(t, reduced)
	require.EqualValues(t, reduced, f.Stats().Reduced)
	require.LessOrEqual(t, memory.Part(budget.OfProcesses)+memory.Part(budget.OfFiles), memory.Limit()/2)

	f.advance(int64(defaultRescanInterval))
	f.rereadAll(f.now(), time.Second)
	f.advance(int64(time.Second))
	f.work()
	for pid := 1; pid <= whole; pid++ {
		require.NotEmpty(t, f.process(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}).Info().Mappings, "another look takes nothing from it")
	}

	for pid := 1; pid <= whole; pid++ {
		f.HandleEvent(exit(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	f.EndInterval()
	f.EndInterval()
	last := f.process(record.ProcessID{TGID: n, StartNs: 5e9})
	f.advance(int64(defaultRescanInterval))
	f.rereadAll(f.now(), time.Second)
	f.advance(int64(time.Second))
	f.work()
	info := f.process(record.ProcessID{TGID: uint32(whole + 1), StartNs: 5e9}).Info()
	require.Len(t, info.Mappings, 150, "there is room again")
	require.NotNil(t, info.Mapping(0x10000))
	require.Contains(t, rec.mappings, last.ID())
}

// A user whose processes take much is the first whose new ones are reduced: others' stay whole.
func TestMemoryReducesUser(t *testing.T) {
	memory := budget.NewMemory(4 << 20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	start := func(pid int, uid string) *Process {
		f.image(pid, 500, "/bin/one")
		f.write(pid, "maps", manyMappings(150))
		f.write(pid, "status", "Uid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\n")
		p := f.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, pid, nobody, nil)
		f.work()
		return p
	}
	require.NotEmpty(t, start(1, "2000").Info().Mappings)
	pid := 1000
	for ; !f.held(crowdedParts); pid++ {
		if pid%10 == 0 {
			require.NotEmpty(t, start(pid, "2000").Info().Mappings)
			f.HandleEvent(exit(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
			f.EndInterval()
			f.EndInterval()
		} else {
			start(pid, "1000")
		}
	}
	require.NotZero(t, f.Stats().Reduced)
	require.NotEmpty(t, start(2, "2000").Info().Mappings, "one of few")
	for !f.short(2000) {
		pid++
		start(pid, "2000")
	}
	require.Less(t, f.userBytes[2000], f.userBytes[1000]/10)
	require.Empty(t, start(3, "2000").Info().Mappings)

	for _, p := range slices.Collect(maps.Values(f.byID)) {
		f.HandleEvent(exit(p.ID()))
	}
	f.EndInterval()
	f.EndInterval()
	require.Empty(t, f.userBytes)
}

// A reduced process is whole again with all that it has, as soon as there is room for its user.
func TestMemoryRestoresUser(t *testing.T) {
	memory := budget.NewMemory(4 << 20)
	f := newFake(t, func(o *Options) { o.Memory, o.Environment = memory, true })
	start := func(pid int, uid string) *Process {
		f.image(pid, 500, "/bin/one")
		f.write(pid, "maps", manyMappings(150))
		f.write(pid, "environ", "OTEL_SERVICE_NAME=shop\x00")
		f.write(pid, "status", "Uid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\n")
		p := f.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, pid, nobody, nil)
		f.work()
		return p
	}
	for pid := range 4 {
		start(pid+1, "2000")
	}
	start(9, "1000")
	part := int(memory.Limit() / memoryParts)
	others := int(memory.Part(budget.OfProcesses)) / 2 // each byte on the heap counts twice
	filled := (crowdedParts*part+part/2)/2 - others
	memory.Add(budget.OfFiles, filled)
	p := start(10, "1000")
	require.Empty(t, p.Info().Mappings)
	require.Empty(t, p.Info().Environment)

	memory.Add(budget.OfFiles, -part/2) // one part less: less than half of it is this user's
	require.True(t, f.held(reducedParts))
	f.rereadAll(f.now(), 0)
	f.advance(int64(time.Second))
	f.work()
	require.Len(t, p.Info().Mappings, 150)
	require.NotEmpty(t, p.Info().Environment)
}

// Of a reduced process's context only names that take little are kept.
func TestMemoryReducesNames(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	memory.Add(budget.OfProcesses, 1<<20)
	for names, kept := range map[int]int{10: 10, 100: 0} {
		f := newFake(t, func(o *Options) { o.Memory = memory })
		l := &look{wanted: true}
		s := &l.read.context
		s.context = &processctx.Context{Resource: []*commonpb.KeyValue{{Key: strings.Repeat("k", maxReducedNames)}}}
		s.resource = s.context.Resource
		for i := range names {
			s.context.Keys = append(s.context.Keys, fmt.Sprint(i))
		}
		s.setNames(s.context.Keys)
		l.info.setContext(s)
		decide(l, f.situation(f.overflow, f.short(0)))
		require.True(t, s.reduced)
		require.Empty(t, l.info.Context.Resource)
		require.Empty(t, l.info.Resource)
		require.Equal(t, kept, l.info.Keys(f.now()).Len())
	}
}

// So does the resource of a context that was taken back, which takes memory until then.
func TestMemoryOfResourceTakenBack(t *testing.T) {
	s := &contextState{resource: []*commonpb.KeyValue{{Key: strings.Repeat("k", maxReducedNames)}}}
	info := &Info{}
	info.setContext(s)
	require.Greater(t, info.bytes(), maxReducedNames)
	require.True(t, s.reduce())
	info.setContext(s)
	require.Empty(t, info.Resource)
	require.Less(t, info.bytes(), maxReducedNames)
	require.False(t, s.reduce(), "once")
}

// Names that a process has taken back are counted as long as they are kept, and go like others.
func TestMemoryOfNamesTakenBack(t *testing.T) {
	long := strings.Repeat("n", maxReducedNames)
	s := &contextState{context: &processctx.Context{}}
	info := &Info{}
	bytes := func(names ...string) int {
		s.context = &processctx.Context{Keys: names}
		s.setNames(names)
		info.setContext(s)
		return info.bytes()
	}
	published := bytes(long)
	require.GreaterOrEqual(t, bytes(), published)
	require.Equal(t, []string{long}, s.names)
	require.True(t, s.reduce())
	require.Empty(t, s.names)
	info.setContext(s)
	require.Less(t, info.bytes(), published-maxReducedNames)
	require.False(t, s.reduce(), "once")
}

// An index that had another name has none, whatever was kept of the names meanwhile.
func TestMemoryReducesChangedNames(t *testing.T) {
	long := strings.Repeat("n", maxReducedNames)
	resource := []*commonpb.KeyValue{{Key: long}}
	for what, names := range map[string][3]string{
		"changed before":            {"before", "after", "after"},
		"changed while reduced":     {"before", "before", "after"},
		"changed and changed back":  {"before", "after", "before"},
		"dropped, and then changed": {"before" + long, "before" + long, "after"},
	} {
		s := &contextState{}
		publish := func(name string) (conflicts int) {
			s.context = &processctx.Context{Resource: resource, Keys: []string{name, "other"}}
			return s.setNames(s.context.Keys)
		}
		conflicts := publish(names[0]) + publish(names[1])
		require.True(t, s.reduce(), what)
		conflicts += publish(names[2])
		require.Equal(t, 1, conflicts, what)
		require.Equal(t, []string{"", "other"}, s.names, what)
	}
}

// Processes beyond the table's part of all memory are refused, and counted.
func TestMemoryRefuses(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	refused := 0
	for pid := 1; pid <= 1000; pid++ {
		if f.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, pid, nobody, nil).Handle() == 0 {
			refused++
		}
	}
	require.NotZero(t, refused)
	require.EqualValues(t, 1000-f.Stats().Processes, f.Stats().Refused, "some had to make room")
	require.InDelta(t, memory.Limit()/2, memory.Part(budget.OfProcesses), float64(4*processBytes))
}

// Reading processes waits when it has cost more CPU time than it may, and is not forgotten.
func TestCPUBudget(t *testing.T) {
	var f *fake
	cpu := budget.NewCPU(0.1, func() int64 {
		if f == nil {
			return 1e9
		}
		return f.clock.Load()
	})
	f = newFake(t, func(o *Options) { o.CPU = cpu })
	const n = 200
	for pid := 1; pid <= n; pid++ {
		f.image(pid, 500, "/bin/one")
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	const each = 10 * time.Millisecond
	began := f.clock.Load()
	for f.Stats().Loads < n {
		p, w := f.next()
		if p == nil {
			wait := f.jobs.alarmNs - f.clock.Load()
			require.Positive(t, wait)
			require.NotZero(t, f.Stats().Due)
			f.advance(wait)
			continue
		}
		f.run(p, w, &f.scratch)
		f.done(p)
		cpu.Spend(budget.Processes, each)
		f.advance(int64(each))
	}
	// Of 2 s of CPU time, some was saved up; the rest comes at a tenth of a CPU.
	require.InDelta(t, 20, float64(f.clock.Load()-began)/1e9, 2)
	require.NotZero(t, cpu.Use().Delayed[budget.Processes])
	require.Zero(t, f.Stats().Due)
}
