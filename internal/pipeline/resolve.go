//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"maps"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// Values of profile.frame.type.
const (
	frameKernel  = "kernel"
	frameNative  = "native"
	frameGo      = "go"
	frameCPython = "cpython"
	frameJVM     = "jvm"
	frameV8JS    = "v8js"
)

// resolver tells the profile builder what the process table and the symbol
// tables know. It belongs to the output's goroutine.
type resolver struct {
	known
	symbolizer *symbolizer                 // nil: addresses stay without names
	lines      []profile.Line              // of the last frame
	processes  map[uint64]*process.Process // of the batch that is built
	mapped     map[uint64]*process.Info    // what all addresses of the batch are held against
	mappings   map[mappingKey]*profile.Mapping
	user       int64 // whose batch it is; -1: all users'
	// modules stand for the kernel and its modules, whose extent is not known.
	modules map[string]*profile.Mapping
	// someKernel has no build id: it must not pass for the kernel itself.
	someKernel *profile.Mapping
}

const (
	// kernelName is the file of the kernel itself.
	kernelName = "[kernel.kallsyms]"
	// someKernelName stands for the kernel, a module or a BPF program where it is not known which.
	someKernelName = "[kernel]"
)

func newResolver(s *symbolizer) *resolver {
	return &resolver{
		symbolizer: s,
		processes:  map[uint64]*process.Process{},
		mapped:     map[uint64]*process.Info{},
		mappings:   map[mappingKey]*profile.Mapping{},
		modules:    map[string]*profile.Mapping{},
		someKernel: &profile.Mapping{Filename: someKernelName},
	}
}

// mappingKey tells mappings apart that come out differently.
type mappingKey struct {
	start, limit, offset uint64
	file                 *executable.File
	path                 string
}

var _ profile.Resolver = (*resolver)(nil)

// Resource implements profile.Resolver.
func (r *resolver) Resource(handle uint64, attrs pcommon.Map) {
	if r.user >= 0 {
		defer attrs.PutInt("process.real_user.id", r.user)
	}
	r.known.Resource(handle, attrs)
}

// Epoch implements profile.Resolver.
func (r *resolver) Epoch(handle uint64, epoch uint32) uint32 {
	if epoch == 0 || r.processes[handle] == nil {
		return 0
	}
	return r.maps(handle).Epoch(epoch)
}

// maps returns what a process maps: epochs have one meaning in all of a batch.
func (r *resolver) maps(handle uint64) *process.Info {
	info := r.mapped[handle]
	if info == nil {
		info = r.processes[handle].Info()
		r.mapped[handle] = info
	}
	return info
}

// Expect implements profile.Resolver.
func (r *resolver) Expect(handle uint64, epoch uint32, addrs []uint64) {
	if p := r.processes[handle]; p != nil {
		r.symbolizer.expect(p, r.maps(handle), epoch, addrs)
	}
}

// Frame implements profile.Resolver.
func (r *resolver) Frame(handle uint64, epoch uint32, kind profile.FrameKind, addr uint64) profile.Frame {
	if kind == profile.Kernel {
		return r.kernelFrame(addr)
	}
	frame := profile.Frame{Type: frameNative}
	p := r.processes[handle]
	if p == nil {
		return frame
	}
	info := r.maps(handle)
	m := info.MappingIn(epoch, addr)
	if m == nil {
		return frame
	}
	frame.Mapping = r.mapping(m)
	frame.Lines, frame.Type = r.symbolizer.lines(r.lines[:0], p, info, m, addr)
	r.lines = frame.Lines
	return frame
}

func (r *resolver) kernelFrame(addr uint64) profile.Frame {
	function, module, known := r.symbolizer.kernelFunction(addr)
	if !known {
		return profile.Frame{Mapping: r.someKernel, Type: frameKernel}
	}
	r.lines = append(r.lines[:0], profile.Line{Function: function})
	return profile.Frame{Mapping: r.module(module), Type: frameKernel, Lines: r.lines}
}

// goneFunction stands for what a runtime's frame ran, where that had gone before it was read.
const goneFunction = "<gone>"

// RuntimeFrame implements profile.Resolver.
func (r *resolver) RuntimeFrame(handle uint64, word record.RuntimeWord, object uint64) profile.Frame {
	frame := profile.Frame{Type: word.Kind().String()}
	r.lines = r.symbolizer.functions(r.lines[:0], r.processes[handle], word, object)
	if len(r.lines) == 0 {
		r.lines = append(r.lines, profile.Line{Function: goneFunction})
	}
	frame.Lines = r.lines
	return frame
}

// module returns what stands for a module of the kernel, "" for the kernel itself. The
// names are those that perf and pprof use.
func (r *resolver) module(name string) *profile.Mapping {
	known := r.modules[name]
	if known == nil {
		known = &profile.Mapping{Filename: kernelName, BuildIDGNU: symbol.KernelBuildID("/sys", name)}
		if name != "" {
			known.Filename = "[" + name + "]"
		}
		r.modules[name] = known
	}
	return known
}

func (r *resolver) mapping(m *executable.Mapping) *profile.Mapping {
	key := mappingKey{m.Start, m.Limit, m.Offset, m.File, m.Path}
	known := r.mappings[key]
	if known == nil {
		known = &profile.Mapping{Start: m.Start, Limit: m.Limit, FileOffset: m.Offset, Filename: m.Path}
		if m.File != nil {
			known.BuildIDGNU, known.BuildIDGo, known.BuildIDHTLHash = m.File.BuildIDGNU(), m.File.BuildIDGo(), m.File.HTLHash()
		}
		r.mappings[key] = known
	}
	return known
}

// begin prepares for a batch.
func (r *resolver) begin(ctx context.Context, users map[uint32]*userBatch, k known) {
	clear(r.processes)
	clear(r.mapped)
	r.known = k
	for _, p := range users {
		maps.Copy(r.processes, p.processes)
	}
	r.user = -1
	clear(r.mappings)
	clear(r.modules) // one may have been replaced
	r.symbolizer.refresh()
	r.symbolizer.awaitFunctions(ctx, r.processes)
}

// only says that what follows is the batch of one user.
func (r *resolver) only(uid uint32) { r.user = int64(uid) }

// end lets go of what was needed for the batch only.
func (r *resolver) end() {
	clear(r.processes)
	clear(r.mapped)
	r.known = known{}
	r.symbolizer.release()
}
