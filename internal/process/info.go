//go:build linux

package process

import (
	"sort"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
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
	PodUID       string // of Kubernetes
	Cgroup       string // path in cgroup v2, as the collector's cgroup namespace sees it
	CgroupID     uint64 // if the Selection asks for it; 0: not known
	Verdict      Verdict
	UID          uint32 // real user id; only when Loaded
	KernelThread bool
	Mappings     []executable.Mapping // executable ones, in address order; see MappingIn
	Sources      []labelsource.Status

	// Context is what the process has published of itself; nil if nothing was
	// found, or if ContextErr says what is wrong with it.
	Context    *processctx.Context
	ContextErr string

	// Resource is that of the context, or of the last one if the process has taken it back.
	Resource []*commonpb.KeyValue

	// Environment is the resource that the environment describes, if asked for.
	Environment []*commonpb.KeyValue

	keys        *labels.KeyMap
	keysSinceNs int64
	// See contextState.
	keysSeen, keysTakenBack int

	past   []pastMapping // the last that have gone, oldest first
	epochs []uint32      // 0 and those in which a mapping came to another's place, ascending; nil: none
	forgot bool          // some that have gone are no more in past, though their place may be empty yet
	// order is that of the label sources.
	order labelsource.Order
}

// Mapping returns the executable mapping that holds an address, or nil.
func (i *Info) Mapping(addr uint64) *executable.Mapping {
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
			f.Use(n)
		}
	}
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// activeSources is the number of label sources that are read.
func (i *Info) activeSources() (n int) {
	for j := range i.Sources {
		if i.Sources[j].State == labelsource.Active {
			n++
		}
	}
	return n
}
