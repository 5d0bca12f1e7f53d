//go:build linux && (amd64 || arm64)

package pipeline

import (
	"fmt"
	"math"
	"os"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// reservedDescriptors of the limit are left to what is open for a short time, and to the collector's
	// other components: looks at processes and builders of rows have some each, symbols at most 128 files
	// that do not answer, the rest is for connections. Never more than half of the limit.
	reservedDescriptors = 256
	// startDescriptors are opened after the others are counted, beside those of CPUs: links, off-CPU
	// sampling, the list of CPUs, timers.
	startDescriptors = 24
	// pipelineShare of what is left is one pipeline's: another receiver, started at the same time, may
	// count the same as open.
	pipelineShare = 2
	// keptShare of that is for files that are kept open: stacks need rows before names need files.
	keptShare = 4
	// wantedTables of unwind rows are enough for most hosts: with fewer a warning is due.
	wantedTables = 1024
)

// descriptors are what is open and what may be.
type descriptors struct {
	limit uint64 // RLIMIT_NOFILE, the soft one
	open  int
	// These may be held for long.
	files  int // that are kept open for their symbols
	tables int // of unwind rows in the kernel
}

// newDescriptors shares out what the limit leaves, on a host with CPUs.
func newDescriptors(on bpf.CPUs) (descriptors, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return descriptors{}, fmt.Errorf("read limit of open files: %w", err)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return descriptors{}, fmt.Errorf("count open files: %w", err)
	}
	return shareDescriptors(limit.Cur, len(entries)-1, on.Online), nil // less that of the directory
}

// shareDescriptors shares out what a limit leaves beside what is open, and what samplers open later.
func shareDescriptors(limit uint64, open, cpus int) descriptors {
	d := descriptors{limit: limit, open: open}
	most := int(min(limit, math.MaxInt32)) // infinity, too
	room := most - min(reservedDescriptors, most/2) - open - startDescriptors - cpus*bpf.CPUDescriptors
	share := max(room, 0) / pipelineShare
	d.files = min(share/keptShare, process.DefaultMaxDescriptors)
	d.tables = min(share-d.files, record.MaxUnwindTables)
	return d
}

// warn says what there will not be because the limit is low.
func (d *descriptors) warn(o *Options) {
	used := !o.Unwind.FramePointersOnly || !o.Symbols.Skip
	if !used || d.files >= process.DefaultMaxDescriptors && d.tables >= wantedTables {
		return
	}
	o.Logger.Warn("The limit of open files is low. Where more programs and libraries run than have room for their unwind rows, stacks of the others end early; functions of deleted files lack names. Raise it: LimitNOFILE=65536 in the systemd unit, ulimit -n 65536, or docker --ulimit nofile=65536.",
		zap.Uint64("limit", d.limit), zap.Int("open", d.open), zap.Int("unwind_tables", d.tables), zap.Int("kept_files", d.files))
}
