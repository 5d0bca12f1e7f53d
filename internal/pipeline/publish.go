//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// publisher tells the BPF programs what the process table found out.
type publisher struct {
	sampler *bpf.Sampler

	mu      sync.Mutex
	sources map[record.ProcessID]struct{} // processes with at least one
}

var (
	_ process.Publisher = (*publisher)(nil)
	_ process.Programs  = (*publisher)(nil)
)

func newPublisher(s *bpf.Sampler) *publisher {
	return &publisher{sampler: s, sources: map[record.ProcessID]struct{}{}}
}

// labelled is the number of processes with at least one label source.
func (p *publisher) labelled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sources)
}

func (p *publisher) note(id record.ProcessID, labelled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if labelled {
		p.sources[id] = struct{}{}
	} else {
		delete(p.sources, id)
	}
}

// SetLabelSources implements process.Publisher. A process without any takes no
// room in the kernel: only what it may have inherited by fork is removed.
func (p *publisher) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	if len(sources) == 0 {
		return p.Forget(id)
	}
	if err := p.sampler.SetLabelSources(id, sources); err != nil {
		return err
	}
	p.note(id, true)
	return nil
}

// SetProgram implements process.Programs.
func (p *publisher) SetProgram(program record.FileKey, sources []record.LabelSource, presumed bool) error {
	return p.sampler.SetProgram(program, sources, presumed)
}

// ForgetProgram implements process.Programs.
func (p *publisher) ForgetProgram(program record.FileKey) error {
	return p.sampler.ForgetProgram(program)
}

// Filter implements process.Publisher.
func (p *publisher) Filter(id record.ProcessID) error {
	p.note(id, false)
	return p.sampler.Filter(id)
}

// Forget implements process.Publisher.
func (p *publisher) Forget(id record.ProcessID) error {
	p.note(id, false)
	return p.sampler.Forget(id)
}
