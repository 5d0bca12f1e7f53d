//go:build linux

package process

import (
	"sort"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// Info is what is known of a process. It is immutable: a change makes a new
// one. All strings are valid UTF-8.
type Info struct {
	// Loaded tells that /proc has been read, of this process or of the one that
	// it was forked from. Else there is only a PID and a name.
	Loaded       bool
	PID          int    // in the collector's PID namespace; 0: not visible there
	Name         string // of the executable, or the command name
	Path         string // of the executable; "" if not known
	CommandLine  []string
	ContainerID  string
	Cgroup       string // path in cgroup v2, as the collector's cgroup namespace sees it
	CgroupID     uint64 // if the Selection asks for it; 0: not known
	Verdict      Verdict
	UID          uint32 // real user id; only when Loaded
	KernelThread bool
	Mappings     []ExecMapping // executable ones, in address order
	Sources      []SourceStatus

	// Context is what the process has published of itself; nil if nothing was
	// found, or if ContextErr says what is wrong with it.
	Context    *processctx.Context
	ContextErr string

	// Environment is the resource that the environment describes, if asked for.
	Environment []*commonpb.KeyValue

	keys        *labels.KeyMap
	keysSinceNs int64
}

// Mapping returns the executable mapping that holds an address, or nil.
func (i *Info) Mapping(addr uint64) *ExecMapping {
	n := sort.Search(len(i.Mappings), func(n int) bool { return i.Mappings[n].Limit > addr })
	if n == len(i.Mappings) || addr < i.Mappings[n].Start {
		return nil
	}
	return &i.Mappings[n]
}

// useFiles counts the uses of files by a process; i may be nil.
func (i *Info) useFiles(n int32) {
	if i == nil {
		return
	}
	for j := range i.Mappings {
		if f := i.Mappings[j].File; f != nil {
			f.users.Add(n)
			if f.first != nil {
				f.first.others.Add(n)
			}
		}
	}
}

// ExecMapping is an executable mapping of a process: [Start, Limit) shows File
// from Offset on.
type ExecMapping struct {
	Start, Limit uint64
	Offset       uint64
	File         *File  // nil for anonymous memory and files that cannot be read
	Path         string // as in /proc/PID/maps

	dev, inode uint64
	bias       uint64 // valid if biased
	biased     bool
}

// Vaddr converts an address in the mapping to a virtual address of the ELF
// file, the one that its symbols use. ok is false if the file is no ELF file or
// maps nothing there.
func (m *ExecMapping) Vaddr(addr uint64) (vaddr uint64, ok bool) {
	return addr - m.bias, m.biased
}

// SourceState says whether labels can be read from a source.
type SourceState uint8

// The states of a label source.
const (
	SourceActive             SourceState = iota // published
	SourceNotRelocated                          // the dynamic loader is not done; tried again
	SourceNoRelocation                          // nothing in the library or its loader leads to the variable
	SourceUnsupportedVersion                    // custom_labels_abi_version is not the ABI's; a V8 or a Go that is not known
	SourceUnsupportedSchema                     // the process context says that thread contexts are of another form
	SourceUnsupportedModel                      // resolver, C library, machine or Go's slot not known
	SourceUndefined                             // the loader found no definition
	SourceNotProgram                            // an executable that is not what this process runs
	SourceUnreadable                            // the file or the memory cannot be read or make no sense
	SourceDuplicate                             // leads to the variable of an active source
	SourceOverLimit                             // there are maxSources others
)

var sourceStateNames = [...]string{
	"active", "not_relocated", "no_relocation", "unsupported_version",
	"unsupported_schema", "unsupported_model",
	"undefined", "not_program", "unreadable", "duplicate", "over_limit",
}

// String returns the name used in metrics and logs.
func (s SourceState) String() string {
	if int(s) >= len(sourceStateNames) {
		return "unknown"
	}
	return sourceStateNames[s]
}

// SourceStatus is one label source of a process and what became of it.
type SourceStatus struct {
	Path     string // of the file that defines it
	ABI      record.ABI
	Model    string              // TLS model; "" if there is no plan
	Location tlsresolve.Location // if Active or Duplicate
	V8       v8heap.Layout       // likewise; record.ABIThreadContextNodeJS only
	Go       golabels.Plan       // as far as it is known; record.ABIGo only
	State    SourceState
	Err      string // why it is not active
}

// Source is the label source, if it is Active or Duplicate.
func (s *SourceStatus) Source() record.LabelSource {
	source := s.Location.Source(s.ABI)
	source.V8Field, source.V8MapType = s.V8.Field, s.V8.MapType
	source.Go, source.GoMap = s.Go.Layout.GoLayout, s.Go.Layout.Map
	return source
}

// activeSources is the number of label sources that are read.
func (i *Info) activeSources() (n int) {
	for j := range i.Sources {
		if i.Sources[j].State == SourceActive {
			n++
		}
	}
	return n
}
