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

	mu      sync.Mutex
	sources map[record.ProcessID]struct{} // processes with at least one label source
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
	return &publisher{programs: to, sources: map[record.ProcessID]struct{}{}}
}

// labelled is the number of processes with at least one label source.
func (p *publisher) labelled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sources)
}

// note notes whether a process has a label source.
func (p *publisher) note(id record.ProcessID, has bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if has {
		p.sources[id] = struct{}{}
	} else {
		delete(p.sources, id)
	}
}

// SetLabelSources implements process.Publisher.
func (p *publisher) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	err := p.programs.SetLabelSources(id, sources)
	p.note(id, err == nil && len(sources) > 0)
	return err
}

// Filter implements process.Publisher.
func (p *publisher) Filter(id record.ProcessID) error {
	p.note(id, false)
	return p.programs.Filter(id)
}

// Forget implements process.Publisher.
func (p *publisher) Forget(id record.ProcessID) error {
	p.note(id, false)
	return p.programs.Forget(id)
}
