//go:build linux

package process

import (
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What is held for each process, beside what depends on it.
const (
	processBytes = int(unsafe.Sizeof(Process{})+unsafe.Sizeof(workerState{})+unsafe.Sizeof(Info{})) + 6*budget.MapEntryBytes
	mappingBytes = int(unsafe.Sizeof(executable.Mapping{}) + unsafe.Sizeof(record.UnwindMapping{}))
)

// The table may take half of all memory: from three eighths on processes are reduced,
// so that there is room for all that are admitted.
const (
	reducedEighths = 3
	fullEighths    = 4
)

// maxReducedNames bounds the names that are kept of a reduced process's context.
const maxReducedNames = 4 << 10

// bytes estimates the memory of what is known of a process, of which nil takes none.
func (i *Info) bytes() int {
	if i == nil {
		return 0
	}
	sum := int(unsafe.Sizeof(Info{})) + len(i.Name) + len(i.Path) + len(i.ContainerID) + len(i.Cgroup) + len(i.ContextErr)
	for _, arg := range i.CommandLine {
		sum += 16 + len(arg)
	}
	sum += mappingBytes * len(i.Mappings)
	for j := range i.Mappings {
		if m := &i.Mappings[j]; m.File == nil || m.Path != m.File.Path() {
			sum += len(m.Path)
		}
	}
	for j := range i.Sources {
		sum += labelsource.Bytes + len(i.Sources[j].Err)
	}
	return sum + i.Context.Bytes() + processctx.ResourceBytes(i.Environment)
}

// account tells what a process takes now. The table is locked.
func (t *Table) account(p *Process) {
	if t.byHandle[p.handle] != p {
		return // let go
	}
	functions, user := p.functions.held()
	bytes := processBytes + p.current.bytes + p.previous.bytes + functions
	if user != nil {
		user.bytes.Add(int64(functions - p.functionBytes))
		p.functionBytes = functions
	}
	t.opts.Memory.Add(budget.OfProcesses, bytes-p.bytes)
	p.bytes = bytes
}

// forgetBirth lets go of what a process was born with, and of what was known before,
// when no exec can make that true again.
func (p *Process) forgetBirth(nowNs int64) {
	if p.current.info != nil && uint64(nowNs) > p.current.endNs+uint64(execDuration+sampleDelay) {
		p.birth = p.current.info
		p.previous = read{}
	}
}
