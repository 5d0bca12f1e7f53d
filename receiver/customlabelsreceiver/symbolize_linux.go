//go:build amd64 || arm64

package customlabelsreceiver

import (
	"os"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
)

// symbolBytes bounds the memory of the symbol tables of files.
const symbolBytes = 16 << 20

// symbolizer names functions. A nil symbolizer names none.
type symbolizer struct {
	log    *zap.Logger
	fs     procfs.FS
	files  *symbol.Cache[procfs.FileID]
	kernel *symbol.Kernel // nil until the first kernel frame, and where it can't be had
	asked  bool           // for the kernel's symbols
	frames []symbol.Frame // scratch
}

func newSymbolizer(log *zap.Logger, fs procfs.FS) *symbolizer {
	return &symbolizer{
		log:   log,
		fs:    fs,
		files: symbol.NewCache[procfs.FileID](symbol.CacheOptions{MaxBytes: symbolBytes}),
	}
}

// lines appends the functions at an address of a process, innermost first, and
// returns the type of the frame.
func (s *symbolizer) lines(to []profile.Line, m *process.ExecMapping, addr uint64) ([]profile.Line, string) {
	if s == nil || m.File == nil {
		return to, frameNative
	}
	vaddr, ok := m.Vaddr(addr)
	if !ok {
		return to, frameNative
	}
	var language symbol.Language
	s.frames, language = s.files.Lookup(s.frames[:0], m.File.Key(), fileSource{m.File, s.fs}, vaddr)
	for _, f := range s.frames {
		to = append(to, profile.Line{Function: f.Name, File: f.File, Line: int64(f.Line), StartLine: int64(f.StartLine)})
	}
	return to, frameTypes[language]
}

// frameTypes are the values of profile.frame.type.
var frameTypes = [...]string{symbol.Native: frameNative, symbol.Go: frameGo}

// kernelFunction names the function at a kernel address; "" when it is not
// known. The kernel's symbols are read at the first call.
func (s *symbolizer) kernelFunction(addr uint64) string {
	if s == nil {
		return ""
	}
	if !s.asked {
		s.asked = true
		kernel, err := symbol.NewKernel(s.fs)
		if err != nil {
			s.log.Warn("kernel frames stay without names", zap.Error(err))
		} else {
			s.kernel = kernel
		}
	}
	if s.kernel == nil {
		return ""
	}
	fn, _, ok := s.kernel.Lookup(addr)
	if !ok {
		return ""
	}
	return fn.Name
}

// refresh makes up for kernel modules that were loaded meanwhile. It is called
// between batches.
func (s *symbolizer) refresh() {
	if s == nil || s.kernel == nil {
		return
	}
	if err := s.kernel.Refresh(); err != nil {
		s.log.Warn("the kernel's symbols could not be read again", zap.Error(err))
	}
}

// release closes the files that the lookups of a batch have left open.
func (s *symbolizer) release() {
	if s != nil {
		s.files.CloseFiles()
	}
}

// fileSource shows a file of the process table to the symbol cache.
type fileSource struct {
	*process.File
	fs procfs.FS
}

// Open implements symbol.Source.
func (s fileSource) Open() (symbol.Contents, int64, error) {
	f, size, err := s.File.Open()
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

// OpenPath implements symbol.Source.
func (s fileSource) OpenPath(root symbol.Root, path string) (symbol.Contents, int64, error) {
	pid := 0
	if root == symbol.TargetRoot {
		if pid = s.PID(); pid == 0 {
			return nil, 0, os.ErrNotExist
		}
	}
	f, info, err := s.fs.OpenPath(pid, path)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size, nil
}
