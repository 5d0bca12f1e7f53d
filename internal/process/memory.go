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

// The table may take half of all memory. Before that processes are reduced, so that there is room for
// all that are admitted: first those of a user who has more than all others together, then those of
// users who have more than one part in smallParts of what all have.
const (
	memoryParts  = 16
	reducedParts = 6
	crowdedParts = 7
	fullParts    = 8
	smallParts   = 32
)

// maxReducedNames bounds the names that are kept of a reduced process's context.
const maxReducedNames = 4 << 10

// bytes estimates the memory of what is known of a process, of which nil takes none.
func (i *Info) bytes() int {
	if i == nil {
		return 0
	}
	sum := int(unsafe.Sizeof(Info{})) + len(i.Name) + len(i.Path) + len(i.ContainerID) + len(i.PodUID) + len(i.Cgroup) + len(i.ContextErr)
	for _, arg := range i.CommandLine {
		sum += 16 + len(arg)
	}
	sum += mappingBytes * len(i.Mappings)
	sum += i.pastBytes()
	for j := range i.Mappings {
		sum += ownPath(&i.Mappings[j])
	}
	for j := range i.Sources {
		sum += labelsource.Bytes + len(i.Sources[j].Err)
	}
	if i.Context == nil {
		sum += processctx.ResourceBytes(i.Resource)
	}
	return sum + 8*i.keysSeen + i.keysTakenBack + i.Context.Bytes() + processctx.ResourceBytes(i.Environment)
}

// ownPath is what a mapping's path takes, which most share with the file.
func ownPath(m *executable.Mapping) int {
	if m.File != nil && m.Path == m.File.Path() {
		return 0
	}
	return len(m.Path)
}

// pastBytes are those of what is gone, in bytes.
func (i *Info) pastBytes() int {
	if i == nil {
		return 0
	}
	sum := int(unsafe.Sizeof(pastMapping{}))*len(i.past) + 4*len(i.epochs)
	for j := range i.past {
		sum += ownPath(&i.past[j].Mapping)
	}
	return sum
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
	t.hold(p, bytes)
}

// hold counts what a process takes, all in all and for its user. The table is locked.
func (t *Table) hold(p *Process, bytes int) {
	t.opts.Memory.Add(budget.OfProcesses, bytes-p.bytes)
	if t.userBytes[p.bytesUID] -= p.bytes; t.userBytes[p.bytesUID] == 0 {
		delete(t.userBytes, p.bytesUID)
	}
	p.bytes, p.bytesUID = bytes, p.user()
	if bytes != 0 {
		t.userBytes[p.bytesUID] += bytes
	}
}

// short reports whether there is little memory left for what is new of a user's processes.
func (t *Table) short(uid uint32) bool {
	if !t.used(reducedParts, budget.Scarce) {
		return false
	}
	if t.used(fullParts, budget.Scarce) {
		return true
	}
	parts := 2
	if t.held(crowdedParts) {
		parts = smallParts
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := 0
	for _, bytes := range t.userBytes {
		all += bytes
	}
	return parts*t.userBytes[uid] > all
}

// forgetBirth lets go of what a process was born with, and of what was known before,
// when no exec can make that true again.
func (p *Process) forgetBirth(nowNs int64) {
	if p.current.info != nil && uint64(nowNs) > p.current.endNs+uint64(execDuration+sampleDelay) {
		p.birth = p.current.info
		p.previous = read{}
	}
}
