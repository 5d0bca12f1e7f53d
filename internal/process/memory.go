//go:build linux

package process

import (
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// What is held for each process and file, beside what depends on it.
const (
	// mapEntryBytes of a map with small keys and values, at the usual load.
	mapEntryBytes = 64
	processBytes  = int(unsafe.Sizeof(Process{})+unsafe.Sizeof(Info{})) + 6*mapEntryBytes
	fileBytes     = int(unsafe.Sizeof(File{})+unsafe.Sizeof(place{})) + 512 + 3*mapEntryBytes
	mappingBytes  = int(unsafe.Sizeof(ExecMapping{}) + unsafe.Sizeof(record.UnwindMapping{}))
	sourceBytes   = int(unsafe.Sizeof(SourceStatus{})+unsafe.Sizeof(record.LabelSource{})+unsafe.Sizeof(located{})) + mapEntryBytes
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
		if m := &i.Mappings[j]; m.File == nil || m.Path != m.File.path {
			sum += len(m.Path)
		}
	}
	for j := range i.Sources {
		sum += sourceBytes + len(i.Sources[j].Err)
	}
	return sum + i.Context.Bytes() + processctx.ResourceBytes(i.Environment)
}

// account tells what a process takes now. The table is locked.
func (t *Table) account(p *Process) {
	if t.byHandle[p.handle] != p {
		return // let go
	}
	bytes := processBytes + p.current.bytes + p.previous.bytes
	t.opts.Memory.Add(budget.OfProcesses, bytes-p.bytes)
	p.bytes = bytes
}

// used reports whether processes and files take so many eighths of all memory, or all
// parts together have reached a stage.
func (t *Table) used(eighths int64, stage budget.Pressure) bool {
	m := t.opts.Memory
	return m != nil && (m.Pressure() >= stage || m.Part(budget.OfProcesses)+m.Part(budget.OfFiles) >= m.Limit()/8*eighths)
}

// reduce leaves out of what was read of a process what takes the most memory, when there
// is little left: mappings, and so unwind rows and names, and the resource that it has
// published. Who it is and where its labels are stays. It is looked at again as any
// process is, and has all again when there is room.
func (t *Table) reduce(p *Process, info *Info) {
	reduced := t.used(reducedEighths, budget.Scarce) && (p.load.reduced || info.bytes() > p.load.info.bytes())
	if reduced && !p.load.reduced {
		t.counts.reduced.Add(1)
	}
	p.load.reduced = reduced
	if !reduced {
		return
	}
	info.Mappings, info.CommandLine, info.Environment = nil, nil, nil
	s := &p.load.context
	if s.context != nil && s.context.Bytes() > maxReducedNames {
		s.context = s.context.Reduced(maxReducedNames)
		s.names, s.keys = nil, nil
		t.setKeys(p, s.context.Keys)
		s.reduced = true
		info.setContext(s)
	}
}

// mayRestore reports whether there is room again for what was left out of a process.
func (t *Table) mayRestore(reduced bool) bool {
	return reduced && !t.used(reducedEighths, budget.Scarce)
}

// forgetBirth lets go of what a process was born with, and of what was known before,
// when no exec can make that true again.
func (p *Process) forgetBirth(nowNs int64) {
	if p.current.info != nil && uint64(nowNs) > p.current.endNs+uint64(execDuration+sampleDelay) {
		p.birth = p.current.info
		p.previous = read{}
	}
}
