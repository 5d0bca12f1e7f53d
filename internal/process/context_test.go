//go:build linux

package process

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

const (
	contextAddr = 0x7f00_0000_0000
	payloadAddr = 0x55_0000_0000
	// bootLead is how much CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC in these tests.
	bootLead = int64(time.Hour)

	noContextMaps = "10000-20000 r-xp 00000000 00:00 0 [x]\n"
	contextMaps   = noContextMaps + "7f0000000000-7f0000001000 rw-p 00000000 00:01 7                          /memfd:OTEL_CTX (deleted)\n"
)

// contextMemory is what the process context's pieces show.
type contextMemory map[uint64][]byte

func (m contextMemory) ReadAt(p []byte, addr uint64) error {
	for start, piece := range m {
		if addr >= start && addr+uint64(len(p)) <= start+uint64(len(piece)) {
			copy(p, piece[addr-start:])
			return nil
		}
	}
	return procfs.ErrFault
}

// publish writes a context of schema tls_v1 with these names.
func (m contextMemory) publish(t *testing.T, publishedNs int64, schema string, names ...string) {
	t.Helper()
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	list := &commonpb.ArrayValue{}
	for _, name := range names {
		list.Values = append(list.Values, text(name))
	}
	resource, err := proto.Marshal(&resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: text("shop")}}})
	require.NoError(t, err)
	payload := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), resource)
	for _, a := range []*commonpb.KeyValue{
		{Key: "threadlocal.schema_version", Value: text(schema)},
		{Key: "threadlocal.attribute_key_map", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}},
	} {
		b, err := proto.Marshal(a)
		require.NoError(t, err)
		payload = protowire.AppendBytes(protowire.AppendTag(payload, 2, protowire.BytesType), b)
	}
	header := make([]byte, 32)
	copy(header, "OTEL_CTX")
	binary.LittleEndian.PutUint32(header[8:], 2)
	binary.LittleEndian.PutUint32(header[12:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(header[16:], uint64(publishedNs+bootLead))
	binary.LittleEndian.PutUint64(header[24:], payloadAddr)
	maps.Copy(m, contextMemory{contextAddr: header, payloadAddr: payload})
}

// contextFake is a table with one process, whose memory is memory.
func contextFake(t *testing.T) (*fake, contextMemory, *Process) {
	memory := contextMemory{}
	f := newFake(t)
	f.opts.memory = func(int) tlsresolve.Memory { return memory }
	f.opts.bootTime = func() int64 { return f.clock.Load() + bootLead }
	f.image(42, 500, "/bin/x")
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42})
	f.work()
	f.Lookup(image1, 42, nobody, []byte("x"))
	return f, memory, f.process(image1)
}

// name is the name of a key index for a sample of now.
func (f *fake) name(p *Process, index byte) string {
	name, _ := p.Info().Keys(f.clock.Load()).Name(index)
	return name
}

// A context that comes after the process was read is found when the process is
// sampled; so is its update, and its end.
func TestContextFollowed(t *testing.T) {
	f, memory, p := contextFake(t)
	require.Nil(t, p.Info().Context)

	f.advance(int64(time.Second))
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	require.Zero(t, f.work(), "nothing tells of it")
	f.Sampled(p, f.clock.Load())
	require.Equal(t, 1, f.work())
	require.Equal(t, processctx.SchemaTLS, p.Info().Context.Schema)
	require.Equal(t, "route", f.name(p, 0))
	require.Empty(t, f.name(p, 1))

	reads := f.Stats().ContextReads
	f.Sampled(p, f.clock.Load())
	require.Zero(t, f.work(), "not before the gap has passed")
	f.advance(int64(contextGap))
	f.Sampled(p, f.clock.Load())
	require.Equal(t, 1, f.work())
	require.Equal(t, reads, f.Stats().ContextReads, "an unchanged timestamp is enough")

	memory.publish(t, f.clock.Load(), "tls_v1", "route", "tenant")
	f.advance(int64(contextGap))
	f.Sampled(p, f.clock.Load())
	require.Equal(t, 1, f.work())
	require.Equal(t, "tenant", f.name(p, 1))

	// The publisher is in the middle of an update: the last one holds.
	clear(memory[contextAddr][16:24])
	f.advance(int64(contextGap))
	f.Sampled(p, f.clock.Load())
	require.NotZero(t, f.work())
	require.Equal(t, "tenant", f.name(p, 1))

	f.write(42, "maps", noContextMaps)
	clear(memory)
	f.advance(int64(time.Second))
	f.Sampled(p, f.clock.Load())
	require.NotZero(t, f.work())
	require.Nil(t, p.Info().Context)
	require.Empty(t, f.name(p, 0))
}

// What is known of a process stays when a look at it comes while it exits: it has no memory
// then, or loses it in the course of the look.
func TestContextOfTheEnding(t *testing.T) {
	for name, during := range map[string]bool{"before the look": false, "during the look": true} {
		t.Run(name, func(t *testing.T) {
			f, memory, p := contextFake(t)
			memory.publish(t, f.clock.Load(), "tls_v1", "route")
			f.write(42, "maps", contextMaps)
			f.advance(int64(maxLateGap))
			f.Sampled(p, f.clock.Load())
			f.work()
			known := p.Info()
			require.NotNil(t, known.Context)

			end := func() { f.write(42, "stat", "42 (x) R 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0 0 0 0 0\n") }
			f.opts.memory = func(int) tlsresolve.Memory {
				end()
				return contextMemory{}
			}
			f.write(42, "maps", "")
			if !during {
				end()
			}
			f.advance(int64(contextGap))
			f.Sampled(p, f.clock.Load())
			require.Equal(t, 1, f.work())
			require.Same(t, known, p.Info())
			require.Zero(t, f.Stats().Lost, "the exit is still to come")
		})
	}
}

// The memory of a process that has just ended says nothing of its context, and is no error.
func TestContextMemoryGone(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	f.opts.memory = func(int) tlsresolve.Memory { return goneMemory{} }
	f.write(42, "maps", strings.ReplaceAll(contextMaps, "7f000000", "7f100000"))
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.NotNil(t, p.Info().Context)
	require.Zero(t, f.Stats().ContextErrors)
}

type goneMemory struct{}

func (goneMemory) ReadAt([]byte, uint64) error { return procfs.ErrNoProcess }

// A sample with an index that has no name makes for a look at once.
func TestContextAwaited(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()

	f.advance(int64(keyGap))
	memory.publish(t, f.clock.Load(), "tls_v1", "route", "tenant")
	sample := f.clock.Load()
	require.True(t, f.AwaitContext(p, sample))
	require.Less(t, p.ContextCheckedNs(), sample)
	f.advance(1)
	require.Equal(t, 1, f.work())
	require.GreaterOrEqual(t, p.ContextCheckedNs(), sample)
	require.Equal(t, "tenant", f.name(p, 1))
	require.False(t, f.AwaitContext(p, sample), "looked at since")

	f.HandleEvent(record.Event{Kind: record.EventExit, Process: image1, PID: 42})
	require.False(t, f.AwaitContext(p, f.clock.Load()), "nothing left to look at")
}

// What a thread had before the process published names does not mean these.
func TestContextNamesNotBackdated(t *testing.T) {
	f, memory, p := contextFake(t)
	f.advance(int64(time.Second))
	published := f.clock.Load()
	memory.publish(t, published, "tls_v1", "route")
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Nil(t, p.Info().Keys(published-1))
	require.Equal(t, 1, p.Info().Keys(published).Len())

	// An update extends the names; it does not begin anew.
	f.advance(int64(time.Second))
	memory.publish(t, f.clock.Load(), "tls_v1", "route", "tenant")
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Equal(t, 2, p.Info().Keys(published).Len())

	// A timestamp from the future is not believed.
	g, memory, q := contextFake(t)
	memory.publish(t, g.clock.Load()+int64(time.Hour), "tls_v1", "route")
	g.write(42, "maps", contextMaps)
	g.advance(int64(maxLateGap))
	g.Sampled(q, g.clock.Load())
	g.work()
	require.Equal(t, 1, q.Info().Keys(g.clock.Load()).Len())
}

// Names only ever come. One that changes has no meaning any more.
func TestContextKeysAppendOnly(t *testing.T) {
	f, memory, p := contextFake(t)
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	for i, step := range []struct{ published, want []string }{
		{[]string{"a", "b", "c"}, []string{"a", "b", "c", ""}},
		{[]string{"a"}, []string{"a", "b", "c", ""}},
		{[]string{"a", "x", "c", "d"}, []string{"a", "", "c", "d"}},
		{[]string{"a", "b", "c", "d"}, []string{"a", "", "c", "d"}},
		{[]string{"a", "b", "c", "d", ""}, []string{"a", "", "c", "d", ""}},
		{[]string{"a", "b", "c", "d", "e"}, []string{"a", "", "c", "d", "e"}},
		{[]string{"a", "b", "c", "d", "f"}, []string{"a", "", "c", "d", ""}},
	} {
		memory.publish(t, f.clock.Load(), "tls_v1", step.published...)
		f.Sampled(p, f.clock.Load())
		f.work()
		for index, want := range step.want {
			require.Equal(t, want, f.name(p, byte(index)), "step %d, index %d", i, index)
		}
		f.advance(int64(time.Second))
	}
	require.EqualValues(t, 2, f.Stats().KeyConflicts)
}

// What an index has meant is remembered when a look comes between two contexts, of which a thread may
// still have records of the first.
func TestContextKeysChangeBetweenLooks(t *testing.T) {
	for name, between := range map[string]func(*fake, contextMemory){
		"no look":    nil,
		"taken back": func(f *fake, _ contextMemory) { f.write(42, "maps", noContextMaps) },
		"unreadable": func(_ *fake, memory contextMemory) {
			binary.LittleEndian.PutUint32(memory[contextAddr][12:], 1<<30)
		},
		"not wanted": func(f *fake, _ contextMemory) {
			f.opts.Selection = wantsUID(1000)
			f.setUID(42, "0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, memory, p := contextFake(t)
			f.write(42, "maps", contextMaps)
			memory.publish(t, f.clock.Load(), "tls_v1", "a", "b", "c")
			f.lookAgain()
			require.Equal(t, "a", f.name(p, 0))
			if between != nil {
				memory.publish(t, f.clock.Load(), "tls_v1", "a", "b", "c")
				between(f, memory)
				f.lookAgain()
				require.Nil(t, p.Info().Context)
				require.Equal(t, name != "not wanted", len(p.Info().Resource) > 0, "it is the same service")
				require.Empty(t, f.name(p, 0))
				require.Equal(t, 3, p.Info().keysSeen, "it takes memory")
			}
			f.setUID(42, "1000")
			f.write(42, "maps", contextMaps)
			memory.publish(t, f.clock.Load(), "tls_v1", "b", "a", "c")
			f.lookAgain()
			require.Empty(t, f.name(p, 0))
			require.Empty(t, f.name(p, 1))
			require.Equal(t, "c", f.name(p, 2))
			require.EqualValues(t, 2, f.Stats().KeyConflicts)
		})
	}
}

// A child does not inherit the mapping, nor does another image.
func TestContextNotInherited(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.NotNil(t, p.Info().Context)

	child := record.ProcessID{TGID: 43, StartNs: 6_000_000_001, ExecID: 1}
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())})
	require.Nil(t, f.process(child).Info().Context)
	require.NotEmpty(t, p.Info().Resource)
	require.Empty(t, f.process(child).Info().Resource)
	require.Empty(t, f.name(f.process(child), 0))

	f.write(42, "maps", noContextMaps)
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: image2, PID: 42, TimeNs: uint64(f.clock.Load())})
	require.Nil(t, f.process(image2).Info().Context)
	require.Empty(t, f.process(image2).Info().Resource)
}

func TestContextErrors(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	binary.LittleEndian.PutUint32(memory[contextAddr][12:], 1<<30)
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Nil(t, p.Info().Context)
	require.Contains(t, p.Info().ContextErr, "too large")
	require.EqualValues(t, 1, f.Stats().ContextErrors)
	require.Zero(t, f.Stats().LoadErrors, "the rest of the process is fine")

	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.NotNil(t, p.Info().Context)
	require.Empty(t, p.Info().ContextErr)
}

// Of a context of another version, the version is named.
func TestContextVersion(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	binary.LittleEndian.PutUint32(memory[contextAddr][8:], 1)
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Nil(t, p.Info().Context)
	require.Contains(t, p.Info().ContextErr, "version 1, not 2")
	require.EqualValues(t, 1, f.Stats().ContextErrors)
}

// Attributes that are left out of a resource are counted with what cannot be read.
func TestContextLeftOut(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	twice := &commonpb.KeyValue{Key: "k", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}}
	b, err := proto.Marshal(&resourcepb.Resource{Attributes: []*commonpb.KeyValue{twice, twice, twice}})
	require.NoError(t, err)
	memory[payloadAddr] = protowire.AppendBytes(protowire.AppendTag(memory[payloadAddr], 1, protowire.BytesType), b)
	binary.LittleEndian.PutUint32(memory[contextAddr][12:], uint32(len(memory[payloadAddr])))
	f.write(42, "maps", contextMaps)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Len(t, p.Info().Context.Resource, 2)
	require.EqualValues(t, 2, f.Stats().ContextErrors)
}

// A mapping of the name that is no context does not hide the one that is.
func TestContextInTheSecondMapping(t *testing.T) {
	f, memory, p := contextFake(t)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.write(42, "maps", noContextMaps+"7efffff00000-7efffff01000 rw-p 00000000 00:01 6 /memfd:OTEL_CTX (deleted)\n"+
		strings.TrimPrefix(contextMaps, noContextMaps))
	memory[0x7efffff00000] = make([]byte, 64)
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Equal(t, "route", f.name(p, 0))
	require.Zero(t, f.Stats().ContextErrors)
}

// The timestamp is enough, too, where the first thread has ended, whose memory has gone with it.
func TestContextOfDeadLeader(t *testing.T) {
	f, memory, p := contextFake(t)
	f.opts.memory = func(tid int) tlsresolve.Memory {
		if tid != 43 {
			return contextMemory{}
		}
		return memory
	}
	stat, err := os.ReadFile(filepath.Join(f.root, "42", "stat"))
	require.NoError(t, err)
	f.image(43, 500, "/bin/x")
	require.NoError(t, os.MkdirAll(filepath.Join(f.root, "42", "task", "43"), 0o755))
	f.write(42, filepath.Join("task", "43", "stat"), strings.Replace(string(stat), "42 ", "43 ", 1))
	f.write(42, "stat", strings.Replace(string(stat), ") S ", ") Z ", 1))
	f.write(43, "maps", contextMaps)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.advance(int64(maxLateGap))
	f.Sampled(p, f.clock.Load())
	f.work()
	require.Equal(t, "route", f.name(p, 0))

	looks := f.counts.loads.Load() + f.counts.rereads.Load()
	for range 10 {
		f.advance(int64(contextGap))
		f.Sampled(p, f.clock.Load())
		require.Equal(t, 1, f.work())
	}
	require.Equal(t, looks, f.counts.loads.Load()+f.counts.rereads.Load())
}

// A process with label sources is searched for a context every maxLateGap at least.
func TestContextSearchGap(t *testing.T) {
	f, _, p := contextFake(t)
	p.worker().sources = []record.LabelSource{{}}
	for range 20 {
		f.contextChecked(p, f.now(), workContext, false)
	}
	require.Equal(t, maxLateGap, p.worker().read.context.gap)
	p.worker().sources = nil
	for range 20 {
		f.contextChecked(p, f.now(), workContext, false)
	}
	require.Equal(t, f.opts.RescanInterval, p.worker().read.context.gap)

	f.contextChecked(p, f.now(), workReread, false)
	require.Equal(t, f.opts.RescanInterval, p.worker().read.context.gap, "a periodic look")
	f.contextChecked(p, f.now(), workReread|workMapped, false)
	require.Equal(t, lateGap, p.worker().read.context.gap)
}

// A sample does not wait for a look that comes later than it can wait.
func TestContextNotInTime(t *testing.T) {
	f, _, p := contextFake(t)
	f.advance(int64(time.Minute))
	sample := f.now()
	p.contextNotBeforeNs = sample + int64(keyPatience) + 1
	require.False(t, f.AwaitContext(p, sample))
	require.Zero(t, p.work)
	p.contextNotBeforeNs--
	require.True(t, f.AwaitContext(p, sample))
	require.Equal(t, workContext, p.work)
}

// A process that is never sampled is not looked at; one without a context less
// and less often.
func TestContextCost(t *testing.T) {
	f, _, p := contextFake(t)
	f.advance(int64(maxLateGap))
	looks := 0
	for range 60_000 { // a minute of samples
		f.advance(ms)
		f.Sampled(p, f.clock.Load())
		looks += f.work()
	}
	require.Less(t, looks, 12)
	require.Greater(t, looks, 5)
	require.Zero(t, testing.AllocsPerRun(100, func() { f.Sampled(p, 0) }))
}

// A process maps code all the time, as just-in-time compilers do, and publishes its context
// after a while: it is found soon, however often it was looked for in vain.
func TestContextOfProcessThatMapsCode(t *testing.T) {
	for _, mappings := range []int{0, 3, 6, 9, 100} {
		f, memory, p := contextFake(t)
		f.advance(int64(200 * time.Millisecond))
		for i := 0; mappings > 0 && i < 10_000; i++ { // it was searched for in vain
			f.advance(ms)
			f.Sampled(p, f.clock.Load())
			f.work()
		}
		for range mappings {
			f.advance(int64(100 * time.Millisecond))
			f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42})
			f.work()
		}
		memory.publish(t, f.clock.Load(), "nodejs_v1", "route")
		f.write(42, "maps", contextMaps)
		published := f.clock.Load()
		for p.Info().Context == nil && f.clock.Load()-published < int64(time.Minute) {
			f.advance(int64(time.Millisecond))
			f.Sampled(p, f.clock.Load())
			f.work()
		}
		require.LessOrEqual(t, f.clock.Load()-published, int64(500*time.Millisecond), "after %d mappings", mappings)
	}
}

// A process announces its context: it is looked at now, and again for what is published
// after the announcement or right after the look; however it is not searched for less
// often for that.
func TestContextNamed(t *testing.T) {
	f, memory, p := contextFake(t)
	named := record.Event{Kind: record.EventContextNamed, Process: image1}
	f.advance(int64(time.Second))
	f.write(42, "maps", contextMaps)
	memory.publish(t, f.clock.Load(), "tls_v1", "route")
	f.HandleEvent(named)
	require.Equal(t, 1, f.work(), "no sample was needed")
	require.Equal(t, "route", f.name(p, 0))

	f.advance(int64(namedDelays[0]))
	memory.publish(t, f.clock.Load(), "tls_v1", "route", "tenant")
	require.Equal(t, 1, f.work())
	require.Equal(t, "tenant", f.name(p, 1), "published after the announcement")
	f.advance(int64(namedDelays[1]))
	memory.publish(t, f.clock.Load(), "tls_v1", "route", "tenant", "job")
	require.Equal(t, 1, f.work())
	require.Equal(t, "job", f.name(p, 2), "what was not announced")
	f.advance(int64(time.Minute))
	require.Zero(t, f.work())

	// In vain.
	g, _, q := contextFake(t)
	for range 100 {
		g.advance(int64(time.Second))
		g.HandleEvent(named)
		require.Equal(t, 1, g.work())
	}
	require.LessOrEqual(t, q.contextDueNs.Load()-g.clock.Load(), int64(lateGap))

	g.HandleEvent(record.Event{Kind: record.EventContextNamed, Process: record.ProcessID{TGID: 4711}})
	g.HandleEvent(record.Event{Kind: record.EventExit, Process: image1, PID: 42})
	g.takeBack()
	g.HandleEvent(named)
	g.advance(int64(time.Minute))
	require.Zero(t, g.work(), "unknown, or gone")
}

// A process that announces contexts all the time gets a bounded share of a worker.
func TestContextNamedStorm(t *testing.T) {
	f, _, _ := contextFake(t)
	const cost = 10 * ms
	f.now = func() int64 { return f.clock.Add(cost / 10) }
	f.opts.cpuTime = f.clock.Load
	before := f.Stats().Rereads
	began := f.clock.Load()
	for f.clock.Load() < began+int64(10*time.Second) {
		f.HandleEvent(record.Event{Kind: record.EventContextNamed, Process: image1})
		f.work()
		f.clock.Add(ms)
	}
	require.Less(t, f.Stats().Rereads-before, uint64(160))
	require.Greater(t, f.Stats().Rereads-before, uint64(20))
}
