//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// programs takes what the BPF programs are told of processes: a bpf.Sampler.
type programs interface {
	process.Publisher
	process.Programs
}

// publisher tells the BPF programs what the process table found out.
type publisher struct {
	programs
	sampler *bpf.Sampler // the same

	// Of these processes the BPF programs have an entry that was made here.
	mu       sync.Mutex
	sources  map[record.ProcessID]struct{} // with at least one label source
	filtered map[record.ProcessID]struct{}
}

var (
	_ process.Publisher = (*publisher)(nil)
	_ process.Programs  = (*publisher)(nil)
)

func newPublisher(s *bpf.Sampler) *publisher {
	p := publishTo(s)
	p.sampler = s
	return p
}

func publishTo(to programs) *publisher {
	return &publisher{programs: to, sources: map[record.ProcessID]struct{}{}, filtered: map[record.ProcessID]struct{}{}}
}

// labelled is the number of processes with at least one label source.
func (p *publisher) labelled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sources)
}

// note notes that a process has an entry, in one of the two, or none.
func (p *publisher) note(id record.ProcessID, in map[record.ProcessID]struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sources, id)
	delete(p.filtered, id)
	if in != nil {
		in[id] = struct{}{}
	}
}

// entered reports whether a process has an entry.
func (p *publisher) entered(id record.ProcessID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, sources := p.sources[id]
	_, filtered := p.filtered[id]
	return sources || filtered
}

// SetLabelSources implements process.Publisher. A process without any takes no
// room in the kernel: only what it may have inherited by fork is removed.
func (p *publisher) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	if len(sources) == 0 {
		p.note(id, nil)
		return p.programs.Forget(id)
	}
	if err := p.programs.SetLabelSources(id, sources); err != nil {
		return err
	}
	p.note(id, p.sources)
	return nil
}

// Filter implements process.Publisher.
func (p *publisher) Filter(id record.ProcessID) error {
	p.note(id, p.filtered)
	return p.programs.Filter(id)
}

// Forget implements process.Publisher. What a process has begun with is removed by its exit.
func (p *publisher) Forget(id record.ProcessID) error {
	if !p.entered(id) {
		return nil
	}
	p.note(id, nil)
	return p.programs.Forget(id)
}
