//go:build amd64 || arm64

package customlabelsreceiver

import (
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
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
}

func newSymbolizer(log *zap.Logger, fs procfs.FS) *symbolizer {
	return &symbolizer{
		log:   log,
		fs:    fs,
		files: symbol.NewCache[procfs.FileID](symbol.CacheOptions{MaxBytes: symbolBytes}),
	}
}

// function names the function at an address of a process; "" when it is not known.
func (s *symbolizer) function(m *process.ExecMapping, addr uint64) string {
	if s == nil || m.File == nil {
		return ""
	}
	vaddr, ok := m.Vaddr(addr)
	if !ok {
		return ""
	}
	fn, ok := s.files.Lookup(m.File.Key(), m.File, vaddr)
	if !ok {
		return ""
	}
	return fn.Name
}

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
