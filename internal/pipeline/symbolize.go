//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// mapShare of the memory for symbols is for perf maps.
const mapShare = 4

// What was not used for namesIdle, and not in several batches, gives way first.
const (
	namesIdle     = 5 * time.Minute
	idleIntervals = 2
)

// frameTypes are the values of profile.frame.type.
var frameTypes = [...]string{
	symbol.Native: frameNative, symbol.Go: frameGo,
	symbol.CPython: frameCPython, symbol.JVM: frameJVM, symbol.V8JS: frameV8JS,
}

// symbolizer names functions. A nil symbolizer names none. Its methods belong to the
// output's goroutine, but for stats, hurry and stop.
type symbolizer struct {
	log    *zap.Logger
	fs     procfs.FS
	table  *process.Table
	limits *budgets
	files  *symbol.Cache[procfs.FileID]
	maps   *symbol.PerfMaps[uint64]    // by handle of the process
	kernel *symbol.Kernel              // nil where it can't be had
	frames []symbol.Frame              // scratch
	vaddrs []uint64                    // scratch
	ran    []langruntime.Frame         // scratch
	wrote  map[*process.Info]generated // of the batch

	patience time.Duration // of a batch, for functions
}

func newSymbolizer(o *Options, fs procfs.FS, table *process.Table, limits *budgets) *symbolizer {
	forMaps := o.Symbols.MaxBytes / mapShare
	names := newNameShares(limits, o.Limits.BackgroundCPU, func() int64 { return int64(monotonicNow()) })
	// The output is the batch that the names are for, and goes with it.
	scarce := func() bool { return limits.memory.PressureBeside(budget.OfOutput) >= budget.Scarce }
	options := func(bytes int) symbol.CacheOptions {
		return symbol.CacheOptions{
			MaxBytes: bytes,
			Idle:     max(namesIdle, idleIntervals*o.ReportInterval),
			Busy:     func(uid uint32) bool { return names.busy(uid) || scarce() },
			Work:     names.spend,
			Pace:     func() func() error { return budget.FilePace(threadTime) },
		}
	}
	return &symbolizer{
		log:    o.Logger,
		fs:     fs,
		table:  table,
		limits: limits,
		files:  symbol.NewCache[procfs.FileID](options(o.Symbols.MaxBytes - forMaps)),
		maps:   symbol.NewPerfMaps[uint64](options(forMaps)),
		wrote:  map[*process.Info]generated{},

		patience: min(functionsPatience, o.ReportInterval/functionsShare),
	}
}

// stop has no names read any more: batches that are still to be built have those that are known. It may be called
// from everywhere.
func (s *symbolizer) stop() {
	if s == nil {
		return
	}
	s.files.Stop()
	s.maps.Stop()
}

// closePatience is how long close waits for files that are being read.
const closePatience = 5 * time.Second

// close ends what is being read. A file that hangs is left behind.
func (s *symbolizer) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	if err := errors.Join(s.files.Close(ctx), s.maps.Close(ctx)); err != nil {
		s.log.Warn("Files that were read for names of functions hang and are left behind.", zap.Error(err))
	}
}

// expect has read together what lines is going to be asked for of a process, in an epoch of what it maps.
func (s *symbolizer) expect(p *process.Process, info *process.Info, epoch uint32, addrs []uint64) {
	if s == nil || !info.Loaded {
		return
	}
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	for len(addrs) > 0 {
		m := info.MappingIn(epoch, addrs[0])
		if m == nil || m.File == nil {
			addrs = addrs[1:]
			continue
		}
		n, _ := slices.BinarySearch(addrs, m.Limit)
		s.vaddrs = s.vaddrs[:0]
		for _, addr := range addrs[:n] {
			if vaddr, ok := m.Vaddr(addr); ok {
				s.vaddrs = append(s.vaddrs, vaddr)
			}
		}
		s.files.Expect(m.File.Key(), fileSource{m.File, m, info, p, s.table, s.fs}, s.vaddrs)
		addrs = addrs[n:]
	}
}

// lines appends the functions at an address of a process, innermost first, and
// returns the type of the frame. What the mapped file does not name may be code that
// the process has generated. The mapping is one of info.
func (s *symbolizer) lines(to []profile.Line, p *process.Process, info *process.Info, m *executable.Mapping, addr uint64) ([]profile.Line, string) {
	if s == nil || !info.Loaded {
		return to, frameNative
	}
	language := symbol.Native
	s.frames = s.frames[:0]
	vaddr, inFile := m.Vaddr(addr)
	if inFile = inFile && m.File != nil; inFile {
		s.frames, language = s.files.Lookup(s.frames, m.File.Key(), fileSource{m.File, m, info, p, s.table, s.fs}, vaddr)
	}
	if len(s.frames) == 0 && p.Handle() != 0 {
		if code := s.generated(info); code.any || !inFile {
			s.frames, language = s.maps.Lookup(s.frames, p.Handle(), mapSource{info, p, s.table, s.fs}, addr, code.language)
		}
	}
	if len(s.frames) == 0 {
		return to, frameNative
	}
	if language == symbol.CPython && p.RunsFunctions() {
		// Its functions have frames of their own: this is a trampoline of perf, by which one is called.
		s.frames[0].Name, language = "py::"+s.frames[0].Name, symbol.Native
	}
	for _, f := range s.frames {
		to = append(to, profile.Line{Function: f.Name, File: f.File, Line: int64(f.Line), StartLine: int64(f.StartLine)})
	}
	return to, frameTypes[language]
}

// functions appends what a frame of a language runtime ran, the innermost function first.
func (s *symbolizer) functions(to []profile.Line, p *process.Process, word record.RuntimeWord, object uint64) []profile.Line {
	if s == nil || p == nil {
		return to
	}
	s.ran = p.Functions(s.ran[:0], word, object)
	for _, f := range s.ran {
		to = append(to, profile.Line{Function: f.Name, File: f.File, Line: int64(f.Line), StartLine: int64(f.StartLine)})
	}
	return to
}

// How long a batch waits for functions that were first seen just before its end: at most a share of
// its interval, since the next one waits behind it.
const (
	functionsPatience = 200 * time.Millisecond
	functionsShare    = 8 // of the interval
	functionsPause    = 5 * time.Millisecond
)

// awaitFunctions waits for functions of a batch's processes that are still to be read, or until
// ctx ends.
func (s *symbolizer) awaitFunctions(ctx context.Context, processes map[uint64]*process.Process) {
	if s == nil {
		return
	}
	deadline := time.Now().Add(s.patience)
	for _, p := range processes {
		for s.table.ReadsFunctions(p) && ctx.Err() == nil && time.Now().Before(deadline) {
			time.Sleep(functionsPause)
		}
	}
}

// kernelHalf is where addresses begin that no process can map: each has the vsyscall page there.
const kernelHalf = 1 << 63

// generated is the code that a process has generated itself.
type generated struct {
	any      bool // else all code that is known of it is of ELF files
	language symbol.Language
}

// generated returns what a process generates and what that was written in, as far as that is
// sure: a JVM generates nothing but its own.
func (s *symbolizer) generated(info *process.Info) generated {
	code, known := s.wrote[info]
	if known {
		return code
	}
	code.language = symbol.Native
	for i := range info.Mappings {
		m := &info.Mappings[i]
		kernels := m.Start >= kernelHalf
		code.any = code.any || !kernels && (m.File == nil || !m.Biased)
		if path.Base(m.Path) == "libjvm.so" {
			code.language = symbol.JVM
		}
	}
	s.wrote[info] = code
	return code
}

// readKernel reads the kernel's symbols, before the first batch: every host has kernel frames.
func (s *symbolizer) readKernel() {
	if s == nil {
		return
	}
	var err error
	s.limits.spend(budget.Names, func() { s.kernel, err = symbol.NewKernel(s.fs) })
	if err != nil {
		s.log.Warn("Functions of the kernel have no names: /proc/kallsyms does not tell them.", zap.Error(err))
	}
}

// kernelFunction names the function at a kernel address and its module, "" for the
// kernel itself; known is false where neither is known.
func (s *symbolizer) kernelFunction(addr uint64) (function, module string, known bool) {
	if s == nil || s.kernel == nil {
		return "", "", false
	}
	function, module, known = s.kernel.Lookup(addr)
	return function, module, known
}

// refresh makes up for kernel modules and BPF programs that were loaded meanwhile, and for code
// that was generated. It is called between batches.
func (s *symbolizer) refresh() {
	if s == nil {
		return
	}
	s.maps.Refresh()
	clear(s.wrote)
	if s.kernel == nil {
		return
	}
	var err error
	s.limits.spend(budget.Names, func() { err = s.kernel.Refresh() })
	if err != nil {
		s.log.Warn("Functions of kernel modules and BPF programs may have no names: /proc/kallsyms could not be read again.", zap.Error(err))
	}
}

// weigh tells what names take, and drops files and perf maps when memory is tight. It
// returns how many.
func (s *symbolizer) weigh(m *budget.Memory) (dropped int64) {
	if s == nil {
		return 0
	}
	if s.kernel != nil {
		m.Set(budget.OfKernel, s.kernel.Bytes())
	}
	m.Set(budget.OfSymbols, s.stats().Bytes)
	if excess := m.Excess(); excess > 0 {
		dropped = int64(s.maps.Yield(excess))
		m.Set(budget.OfSymbols, s.stats().Bytes)
		dropped += int64(s.files.Yield(m.Excess()))
		m.Set(budget.OfSymbols, s.stats().Bytes)
	}
	return dropped
}

// hurry has lookups wait for no file, those that wait already too, or as long as they may. It may be called from
// everywhere.
func (s *symbolizer) hurry(hurried bool) {
	if s == nil {
		return
	}
	s.files.Hurry(hurried)
	s.maps.Hurry(hurried)
}

// release closes the files that the lookups of a batch have left open, and tells of those
// that never answer.
func (s *symbolizer) release() {
	if s == nil {
		return
	}
	s.files.CloseFiles()
	for _, h := range append(s.files.Hung(), s.maps.Hung()...) {
		s.log.Warn("A file with names of functions does not answer. It is left alone until it does.", zap.String("file", h.Name),
			zap.Int("pid", h.PID), zap.Uint32("uid", h.UID), zap.String("container", h.Container))
	}
}

// stats sums up what files and perf maps have cost.
func (s *symbolizer) stats() symbol.CacheStats {
	if s == nil {
		return symbol.CacheStats{}
	}
	sum, maps := s.files.Stats(), s.maps.Stats()
	sum.Files += maps.Files
	sum.Bytes += maps.Bytes
	sum.Loads += maps.Loads
	sum.Failures += maps.Failures
	sum.Truncated += maps.Truncated
	sum.TimedOut += maps.TimedOut
	sum.Refused += maps.Refused
	sum.Hanging += maps.Hanging
	return sum
}
