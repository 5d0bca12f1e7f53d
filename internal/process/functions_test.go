//go:build linux

package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// stack returns words of a user stack: an address, and so many frames of a runtime.
func stack(first, frames int) []uint64 {
	words := []uint64{0x401000}
	for i := range frames {
		object := uint64(0x7f0000000000 + 64*(first+i))
		words = append(words, uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2)), object)
	}
	return words
}

// largeFunction is one that takes so many bytes.
type largeFunction int

func (f largeFunction) Bytes() int { return int(f) }
func (largeFunction) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	return append(to, langruntime.Frame{Name: "large", Line: int(position)})
}

// readAll has what is wanted of a process read, each function as large as that.
func (f *fake) readAll(p *Process, size int) {
	for keys := p.functions.take(); len(keys) > 0; keys = p.functions.take() {
		read := make([]readFunction, len(keys))
		require.Equal(f.t, len(keys), f.readWithin(p, keys, read, func(functionKey) langruntime.Function { return largeFunction(size) }))
		f.keepFunctions(p, keys, read, 0)
		f.functionsLater(p, 0)
	}
}

// What finds no room is counted, and has no name; what is not on stacks any more makes room, for
// which all is looked through once in an interval.
func TestFunctionsBounded(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 42, nobody, nil)
	require.False(t, f.WantFunctions(p, 1000, []uint64{1}))
	require.True(t, f.WantFunctions(p, 1000, stack(0, maxFunctions)))
	require.False(t, f.WantFunctions(p, 1000, stack(0, maxFunctions)), "they are wanted already")
	require.Zero(t, f.Stats().FunctionsRefused)
	f.readAll(p, 10)
	require.EqualValues(t, maxFunctions, f.Stats().FunctionsRead)
	word, object := record.RuntimeWord(stack(0, 1)[1]), stack(0, 1)[2]
	require.Equal(t, []langruntime.Frame{{Name: "large", Line: 2}}, p.Functions(nil, word, object))

	require.False(t, f.WantFunctions(p, 1000, stack(maxFunctions, 3)))
	require.EqualValues(t, 3, f.Stats().FunctionsRefused)
	require.Empty(t, p.Functions(nil, word, stack(maxFunctions, 1)[2]))
	for range keptIntervals + 1 {
		f.HandedOver()
	}
	f.WantFunctions(p, 1000, stack(100, 1)) // on a stack again
	f.WantFunctions(p, 1000, stack(maxFunctions, 3))
	require.EqualValues(t, 3, f.Stats().FunctionsRefused, "there is room again")
	require.Len(t, p.functions.known, 4)

	f.readAll(p, maxFunctionBytes/2-4*functionBytes)
	require.EqualValues(t, 4, f.Stats().FunctionsRefused, "bytes are bounded, too")
	f.WantFunctions(p, 1000, stack(maxFunctions, 3))
	require.EqualValues(t, 5, f.Stats().FunctionsRefused, "it is not read again at once")
	p.functions.bytes = maxFunctionBytes
	f.WantFunctions(p, 1000, stack(2*maxFunctions, 1))
	require.EqualValues(t, 6, f.Stats().FunctionsRefused)
	swept := p.functions.swept
	for _, known := range p.functions.known {
		known.interval = 0 // long ago
	}
	f.WantFunctions(p, 1000, stack(2*maxFunctions, 2))
	require.EqualValues(t, 8, f.Stats().FunctionsRefused, "not again in this interval")
	require.Equal(t, swept, p.functions.swept)
}

// How large functions are is known only when they are read: those that were wanted before take no more
// than there is room for, neither of their process nor of its user, however large they say that they are.
func TestLargeFunctions(t *testing.T) {
	memory := budget.NewMemory(256 << 20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	const large = 1 << 20
	p := f.Lookup(image1, 42, nobody, nil)
	f.WantFunctions(p, 1000, stack(0, 100))
	f.readAll(p, large)
	read := f.Stats().FunctionsRead
	require.EqualValues(t, maxFunctionBytes/large-1, read)
	require.EqualValues(t, 100-read, f.Stats().FunctionsRefused)
	require.LessOrEqual(t, p.functions.bytes, maxFunctionBytes)

	// They are read again when what is not used any more has made room.
	for range keptIntervals + 1 {
		f.HandedOver()
	}
	delete(p.functions.known, functionKey{stack(0, 1)[2], 1, record.RuntimeCPython})
	p.functions.bytes -= large + functionBytes
	f.WantFunctions(p, 1000, stack(99, 1))
	f.readAll(p, large)
	require.Equal(t, read+1, f.Stats().FunctionsRead)

	for i := range 100 {
		p := f.Lookup(record.ProcessID{TGID: uint32(100 + i), StartNs: 1, ExecID: 1}, 100+i, nobody, nil)
		f.WantFunctions(p, 1000, stack(0, 4))
		f.readAll(p, large)
	}
	require.LessOrEqual(t, f.functionUsers[1000].bytes.Load(), memory.Limit()/32*userFunctions32nds)

	// Nor more than there is room for at all.
	p = f.Lookup(record.ProcessID{TGID: 300, StartNs: 1, ExecID: 1}, 300, nobody, nil)
	f.WantFunctions(p, 1001, stack(0, 3))
	memory.Add(budget.OfBatches, int(memory.Limit()))
	read = f.Stats().FunctionsRead
	f.readAll(p, 1)
	require.Equal(t, read, f.Stats().FunctionsRead)
}

// A process that makes reading take long keeps a worker for a moment, and the rest waits.
func TestFunctionsTakeLong(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 42, nobody, nil)
	f.WantFunctions(p, 1000, stack(0, 10))
	keys := p.functions.take()
	tried := f.readWithin(p, keys, make([]readFunction, len(keys)), func(functionKey) langruntime.Function {
		f.advance(int64(functionsPiece) / 2)
		return largeFunction(1)
	})
	require.Equal(t, 2, tried)
	p.functions.giveBack(keys[tried:])
	require.Equal(t, 2, p.functions.reading)
	require.Equal(t, keys[2:], p.functions.take())
	require.Empty(t, p.functions.wanted)
}

// No batch waits for a process that is left alone; when that is over, it does again.
func TestFunctionsOfQuarantined(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 42, nobody, nil)
	f.WantFunctions(p, 1000, stack(0, 1))
	require.True(t, f.ReadsFunctions(p))
	p.quarantinedNs = f.now() + 1
	require.False(t, f.ReadsFunctions(p))
	f.advance(1)
	require.True(t, f.ReadsFunctions(p))
}

// partialFunction may lack something.
type partialFunction struct {
	largeFunction
	partial bool
}

func (f partialFunction) Partial() bool { return f.partial }

// What lacks something is read again after a while, as often as it does, and is there meanwhile.
func TestPartialFunction(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 42, nobody, nil)
	read := func(function langruntime.Function) {
		require.True(t, f.WantFunctions(p, 1000, stack(0, 1)))
		require.False(t, f.WantFunctions(p, 1000, stack(0, 1)), "it is wanted already")
		keys := p.functions.take()
		require.Len(t, keys, 1)
		f.keepFunctions(p, keys, []readFunction{{function: function}}, 0)
		f.functionsLater(p, 0)
	}
	pass := func(until int) {
		for range until {
			require.False(t, f.WantFunctions(p, 1000, stack(0, 1)))
			f.HandedOver()
		}
	}
	size := func() int {
		require.Len(t, p.Functions(nil, record.RuntimeWord(stack(0, 1)[1]), stack(0, 1)[2]), 1)
		return p.functions.bytes - functionBytes
	}
	read(partialFunction{10, true})
	pass(keptIntervals + 1)
	read(partialFunction{20, true})
	require.Equal(t, 20, size())
	pass(2*keptIntervals + 1)
	read(nil)
	require.Equal(t, 20, size(), "it has gone, or there is no room")
	require.Zero(t, f.Stats().FunctionsGone)
	for n := 2; n < maxRereads; n++ {
		pass(keptIntervals<<n + 1)
		read(partialFunction{20, true})
	}
	pass(keptIntervals<<maxRereads + 1)
	read(partialFunction{20, true})
	pass(keptIntervals<<maxRereads + 1)
	f.WantFunctions(p, 1000, stack(0, 1))
	for range keptIntervals + 1 {
		f.HandedOver()
	}
	p.functions.sweep(f.functionsInterval.Load())
	require.Len(t, p.functions.stale, 1)
	require.Equal(t, 20, size(), "it is not forgotten while it is to be read")
	f.keepFunctions(p, p.functions.take(), []readFunction{{function: partialFunction{30, false}}}, 0)
	require.Equal(t, 30, size())
	pass(3 * keptIntervals)
}

// What is read again waits for what is not known yet, and nobody waits for it.
func TestPartialFunctionsComeLast(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 42, nobody, nil)
	const stale = functionsAtOnce + 2
	f.WantFunctions(p, 1000, stack(0, stale))
	for range 2 {
		keys := p.functions.take()
		partial := make([]readFunction, len(keys))
		for i := range partial {
			partial[i].function = partialFunction{10, true}
		}
		f.keepFunctions(p, keys, partial, 0)
	}
	for range keptIntervals + 1 {
		f.HandedOver()
	}
	require.True(t, f.WantFunctions(p, 1000, stack(0, stale)))
	require.False(t, f.ReadsFunctions(p), "they have names")
	first := p.functions.take()
	require.Len(t, first, functionsAtOnce)
	require.False(t, f.ReadsFunctions(p))
	require.True(t, f.WantFunctions(p, 1000, stack(stale, 1)))
	require.True(t, f.ReadsFunctions(p))
	p.functions.giveBack(first)
	news := p.functions.take()
	require.Len(t, news, 1)
	require.EqualValues(t, stack(stale, 1)[2], news[0].object)
	require.True(t, f.ReadsFunctions(p))
	f.keepFunctions(p, news, []readFunction{{function: partialFunction{10, false}}}, 0)
	require.False(t, f.ReadsFunctions(p))
	f.jobs.cancel(p)
	f.functionsLater(p, 0)
	require.Equal(t, workFunctions, p.work)
	require.Equal(t, first, p.functions.take())
}

// Functions of a process that ends, or leaves the table, before they were read are counted.
func TestFunctionsOfEnded(t *testing.T) {
	ends := map[string]func(*fake, *Process){
		"exit":    func(f *fake, _ *Process) { f.HandleEvent(exit(image1)) },
		"no room": func(f *fake, p *Process) { f.expel(p) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			f, p, runtime := failingFake(t, 0)
			require.True(t, f.WantFunctions(p, 1000, stack(0, 2)))
			require.Zero(t, f.Stats().FunctionsGone)
			end(f, p)
			require.EqualValues(t, 2, f.Stats().FunctionsGone)
			require.False(t, f.ReadsFunctions(p))

			for range 3 { // of samples that were late
				f.WantFunctions(p, 1000, stack(0, 3))
				require.EqualValues(t, 3, f.Stats().FunctionsGone)
				f.HandedOver()
			}
			require.Zero(t, runtime.reads)
		})
	}
	t.Run("while it is read", func(t *testing.T) {
		f, p, _ := failingFake(t, 0)
		f.WantFunctions(p, 1000, stack(0, 2))
		keys := p.functions.take()
		f.HandleEvent(exit(image1))
		require.Zero(t, f.Stats().FunctionsGone, "they may be read yet")
		p.functions.giveBack(keys)
		f.functionsLater(p, 0)
		require.EqualValues(t, 2, f.Stats().FunctionsGone)
	})
	t.Run("without a PID", func(t *testing.T) {
		f := newFake(t)
		p := f.Lookup(image1, 0, nobody, nil)
		f.WantFunctions(p, 1000, stack(0, 1))
		require.EqualValues(t, 1, f.Stats().FunctionsGone)
		require.False(t, f.ReadsFunctions(p))
	})
}

// What a process did not have when it was read, or could not be read, is read again after a while.
func TestFunctionGone(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 42, nobody, nil)
	f.WantFunctions(p, 1000, stack(0, 1))
	gone := p.functions.take()
	f.keepFunctions(p, gone, make([]readFunction, 1), 0)
	require.EqualValues(t, 1, f.Stats().FunctionsGone)
	for range 2 {
		f.WantFunctions(p, 1000, stack(0, 1))
		require.Empty(t, p.functions.wanted, "not at once")
	}
	f.HandedOver()
	for range 2 { // in the next interval, then after a while
		f.WantFunctions(p, 1000, stack(0, 1))
		f.keepFunctions(p, p.functions.take(), make([]readFunction, 1), 0)
		for range keptIntervals + 1 {
			f.WantFunctions(p, 1000, stack(0, 1))
			require.Empty(t, p.functions.wanted)
			f.HandedOver()
		}
	}
	require.EqualValues(t, 3, f.Stats().FunctionsGone)
	f.WantFunctions(p, 1000, stack(0, 1))
	f.readAll(p, 10)
	require.NotEmpty(t, p.Functions(nil, record.RuntimeWord(stack(0, 1)[1]), stack(0, 1)[2]))
	require.Equal(t, functionBytes+10, p.functions.bytes)
	require.Zero(t, f.Stats().FunctionsRefused)
}

// failingRuntime has functions that cannot be read for so many times.
type failingRuntime struct {
	*fakeRuntime
	failures, reads int
	meanwhile       func() // what else happens while it is read; nil: nothing
}

func (r *failingRuntime) Open(langruntime.Memory, uint64) (langruntime.Process, error) {
	if r.meanwhile != nil {
		r.meanwhile()
	}
	return r, nil
}

func (r *failingRuntime) Read(langruntime.Memory, uint64, uint32) (langruntime.Function, error) {
	if r.meanwhile != nil {
		r.meanwhile()
	}
	if r.reads++; r.reads <= r.failures {
		return nil, langruntime.ErrGone
	}
	return largeFunction(1), nil
}

// failingFake is a table with a process of such a runtime, which has been opened.
func failingFake(t *testing.T, failures int) (f *fake, p *Process, runtime *failingRuntime) {
	f = newFake(t)
	f.opts.Runtimes[record.RuntimeCPython] = true
	f.image(42, 500, "/bin/some")
	p = f.Lookup(image1, 42, nobody, nil)
	f.work()
	runtime = &failingRuntime{&fakeRuntime{kind: record.RuntimeCPython}, failures, 0, nil}
	info := *p.Info()
	info.Mappings = append(info.Mappings, runtime.mapping("some"))
	info.Mappings[len(info.Mappings)-1].File.Facts().Runtime = runtime
	p.info.Store(&info)
	require.NotNil(t, f.openRuntime(p, p.Info()))
	return f, p, runtime
}

// named wants the first function, has what is due done, and returns what it is called then.
func (f *fake) named(p *Process) []langruntime.Frame {
	f.WantFunctions(p, 1000, stack(0, 1))
	f.advance(int64(functionsGap))
	f.work()
	return p.Functions(nil, record.RuntimeWord(stack(0, 1)[1]), stack(0, 1)[2])
}

// What is read while the process executes another program, of which the event has not come yet, is not taken for the
// former's: it may be of another user.
func TestFunctionsOfNextProgram(t *testing.T) {
	f, p, runtime := failingFake(t, 0)
	executes := func() {
		f.startStack++
		f.image(42, 500, "/bin/other")
	}
	runtime.meanwhile = executes
	require.Empty(t, f.named(p))
	require.Equal(t, 1, runtime.reads)
	require.Zero(t, f.Stats().FunctionsGone, "they are read again")

	p.worker().opened.process = nil
	require.Nil(t, f.openRuntime(p, p.Info()))
	runtime.meanwhile = nil
	f.advance(int64(time.Minute))
	require.NotNil(t, f.openRuntime(p, p.Info()))
}

// A function that was missed once, as it may have been moved just then, is there in the next interval.
func TestFunctionMissedOnce(t *testing.T) {
	f, p, runtime := failingFake(t, 1)
	require.Empty(t, f.named(p))
	require.Empty(t, f.named(p))
	require.Equal(t, 1, runtime.reads)
	f.HandedOver()
	require.NotEmpty(t, f.named(p))
}

// While it cannot be read whether a process still is the one that it was, its functions are not read; they have not gone
// by that.
func TestFunctionsOfUnknownProcess(t *testing.T) {
	stat := func(f *fake) string { return filepath.Join(f.root, "42", "stat") }
	hide := func(f *fake) {
		require.NoError(f.t, os.Rename(stat(f), stat(f)+"0"))
		require.NoError(f.t, os.Symlink("stat", stat(f))) // ELOOP
	}
	show := func(f *fake) { require.NoError(f.t, os.Rename(stat(f)+"0", stat(f))) }

	f, p, runtime := failingFake(t, 0)
	hide(f)
	for range 3 {
		require.Empty(t, f.named(p))
		require.True(t, f.ReadsFunctions(p))
	}
	show(f)
	require.Empty(t, f.named(p), "not at once")
	f.advance(int64(unloadedGap))
	require.NotEmpty(t, f.named(p))
	require.Equal(t, 1, runtime.reads)
	require.Zero(t, f.Stats().FunctionsGone)
	require.Zero(t, p.functions.unloaded)

	// That it cannot be read has an end.
	f, p, _ = failingFake(t, 0)
	hide(f)
	for range maxUnloaded {
		require.Empty(t, f.named(p))
		require.Zero(t, f.Stats().FunctionsGone)
		f.advance(int64(unloadedGap))
	}
	require.Empty(t, f.named(p))
	require.EqualValues(t, 1, f.Stats().FunctionsGone)
	require.False(t, f.ReadsFunctions(p))

	// One that has ended, or whose PID is another's, has none.
	for _, change := range []func(f *fake){
		func(f *fake) { f.remove(42) },
		func(f *fake) { f.image(42, 700, "/bin/other") },
	} {
		f, p, _ = failingFake(t, 0)
		change(f)
		require.Empty(t, f.named(p))
		require.EqualValues(t, 1, f.Stats().FunctionsGone)
	}
}

// A user whose processes have many functions takes no room from another's.
func TestFunctionsOfUser(t *testing.T) {
	const limit = 64 << 20
	memory := budget.NewMemory(limit)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	const large = 1 << 20
	others := f.Lookup(record.ProcessID{TGID: 1, StartNs: 1, ExecID: 1}, 1, nobody, nil)
	var processes []*Process
	for i := range 20 {
		p := f.Lookup(record.ProcessID{TGID: uint32(100 + i), StartNs: 1, ExecID: 1}, 100+i, nobody, nil)
		processes = append(processes, p)
		for n := range 4 {
			f.WantFunctions(p, 1000, stack(n, 1))
			f.readAll(p, large)
		}
	}
	require.Positive(t, f.Stats().FunctionsRefused)
	require.Less(t, memory.Part(budget.OfProcesses), int64(limit/memoryParts*reducedParts), "new processes are not reduced")
	held := f.functionUsers[1000].bytes.Load()
	require.InDelta(t, limit/32*userFunctions32nds, held, large+functionBytes*80)

	refused := f.Stats().FunctionsRefused
	f.WantFunctions(others, 1001, stack(0, 3))
	f.readAll(others, 100)
	require.Equal(t, refused, f.Stats().FunctionsRefused)
	require.EqualValues(t, 3*(functionBytes+100), f.functionUsers[1001].bytes.Load())

	// What a process has not used lately makes room for others of its user.
	for range keptIntervals + 1 {
		f.HandedOver()
	}
	last := processes[len(processes)-1]
	for _, p := range processes {
		f.WantFunctions(p, 1000, stack(9, 1))
	}
	f.WantFunctions(last, 1000, stack(9, 1))
	require.Contains(t, last.functions.known, functionKey{stack(9, 1)[2], 1, record.RuntimeCPython})
	require.Less(t, f.functionUsers[1000].bytes.Load(), held)

	f.mu.Lock()
	for _, p := range append(processes, others) {
		f.letGo(p)
	}
	f.mu.Unlock()
	require.Empty(t, f.functionUsers)
	require.Zero(t, memory.Part(budget.OfProcesses))
}
