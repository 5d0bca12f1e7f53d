//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// contextHook is the program that tells when a process announces a process context.
// Without it everything works, and contexts are found a little later: not every kernel
// lets functions be traced by BPF (aarch64 before 6.4 does not, nor do some that are
// built or confined for sandboxes).
type contextHook struct {
	ContextNamed *ebpf.Program `ebpf:"context_named"`

	link link.Link
	err  error // why it is not attached
}

// loadContextHook loads the program, which shares the ring buffer of events.
func (s *Sampler) loadContextHook() error {
	spec, err := s.kernel.loadContexts()
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	own := map[string]any{
		profilerVarPidNsInum:            s.knobs[profilerVarPidNsInum],
		profilerVarEventsWatermarkBytes: watermark(int(s.config.eventRingBytes())),
	}
	if err := setVariables(spec, own); err != nil {
		return fmt.Errorf("set knobs: %w", err)
	}
	spec.Maps[contextsMapEvents].MaxEntries = s.config.eventRingBytes()
	return s.loadObjects(spec, &s.contextHook, s.objs.ofContexts())
}

// ofContexts returns those that the program of contexts uses as well, by name; before they are loaded, their names.
func (m *olderMaps) ofContexts() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{contextsMapCounts: m.Counts, contextsMapEvents: m.Events}
}

func (h *contextHook) attach() {
	if h.err != nil || h.link != nil {
		return
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: h.ContextNamed})
	if err != nil {
		h.err = fmt.Errorf("attach %s: %w", h.ContextNamed, err)
		return
	}
	h.link = l
}

func (h *contextHook) detach() error {
	if h.link == nil {
		return nil
	}
	err := h.link.Close()
	h.link = nil
	return err
}

func (h *contextHook) close() error {
	err := h.detach()
	if h.ContextNamed != nil {
		err = errors.Join(err, h.ContextNamed.Close())
	}
	return err
}

// ContextEvents returns nil if there are events when processes announce a process context
// (EventContextNamed), or why there are none. It is known after Follow.
func (s *Sampler) ContextEvents() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contextHook.err
}
