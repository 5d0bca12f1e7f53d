//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// publisher tells the BPF programs what the process table found out.
type publisher struct {
	sampler *bpf.Sampler

	mu      sync.Mutex
	sources map[process.ID]struct{} // processes with at least one
}

var (
	_ process.Publisher = (*publisher)(nil)
	_ process.Programs  = (*publisher)(nil)
)

func newPublisher(s *bpf.Sampler) *publisher {
	return &publisher{sampler: s, sources: map[process.ID]struct{}{}}
}

// labelled is the number of processes with at least one label source.
func (p *publisher) labelled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sources)
}

func (p *publisher) note(id process.ID, labelled bool) {
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
func (p *publisher) SetLabelSources(id process.ID, sources []process.LabelSource) error {
	if len(sources) == 0 {
		return p.Forget(id)
	}
	if err := p.sampler.SetLabelSources(bpf.ProcessID(id), sourceList(sources)); err != nil {
		return err
	}
	p.note(id, true)
	return nil
}

func sourceList(sources []process.LabelSource) []bpf.LabelSource {
	list := make([]bpf.LabelSource, len(sources))
	for i, s := range sources {
		list[i] = bpf.LabelSource{
			ABI:        uint8(s.ABI),
			Kind:       uint8(s.Location.Kind),
			Offset:     s.Location.Offset,
			Module:     s.Location.Module,
			Generation: s.Location.Generation,
			V8Field:    s.V8.Field,
			V8MapType:  s.V8.MapType,
			Go:         bpf.GoLayout(s.Go),
		}
	}
	return list
}

// SetProgram implements process.Programs.
func (p *publisher) SetProgram(program process.Program, sources []process.LabelSource, presumed bool) error {
	return p.sampler.SetProgram(bpf.FileKey(program), sourceList(sources), presumed)
}

// ForgetProgram implements process.Programs.
func (p *publisher) ForgetProgram(program process.Program) error {
	return p.sampler.ForgetProgram(bpf.FileKey(program))
}

// Filter implements process.Publisher.
func (p *publisher) Filter(id process.ID) error {
	p.note(id, false)
	return p.sampler.Filter(bpf.ProcessID(id))
}

// Forget implements process.Publisher.
func (p *publisher) Forget(id process.ID) error {
	p.note(id, false)
	return p.sampler.Forget(bpf.ProcessID(id))
}

// processEvent translates an event of the sampler for the process table.
func processEvent(ev bpf.ProcessEvent) process.Event {
	return process.Event{
		Kind:         eventKinds[ev.Kind],
		ID:           process.ID(ev.Process),
		Parent:       process.ID(ev.Parent),
		PID:          int(ev.PID),
		TimeNs:       ev.TimeNs,
		Program:      process.Program(ev.Program),
		Path:         ev.Path,
		KernelThread: ev.KernelThread,
	}
}

var eventKinds = [...]process.EventKind{
	bpf.EventExists: process.Exists,
	bpf.EventExec:   process.Exec,
	bpf.EventFork:   process.Fork,
	bpf.EventExit:   process.Exit,

	bpf.EventContextNamed: process.ContextNamed,
}
