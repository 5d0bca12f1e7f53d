//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/cilium/ebpf/link"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// eventDelay is the longest that an event waits which can: nothing is to be done before the
// process is sampled, and that is told at once. After hurryTime without an event, the first may wait for twice as long.
const eventDelay = 200 * time.Millisecond

func (c *Config) eventReadDelay() time.Duration {
	if c.eventDelay > 0 {
		return c.eventDelay
	}
	return eventDelay
}

// eventBytes of an event in the ring buffer, without a path.
const eventBytes = int(unsafe.Sizeof(record.ProcessEvent{}))

// parseEvent fills ev from the bytes of an event.
func parseEvent(ev *record.Event, b []byte) error {
	if len(b) < eventBytes {
		return &FormatError{"process event of bytes", len(b)}
	}
	raw := (*record.ProcessEvent)(unsafe.Pointer(&b[0]))
	*ev = record.Event{
		Kind:         raw.Kind,
		TimeNs:       raw.TimeNs,
		Process:      raw.Process,
		Parent:       raw.Parent,
		PID:          int(raw.PID),
		KernelThread: raw.KernelThread != 0,
		Program:      raw.Program,
		StartStack:   raw.StartStack,
	}
	if path, n := b[eventBytes:], int(raw.PathBytes); n > 0 && n < record.ExecPathBytes && n <= len(path) {
		ev.Path = string(path[:n])
	}
	return nil
}

// ReadEvents waits for events of processes and fills evs, which is not empty, with those that are
// there. It returns their number, and ErrClosed after Close. Only one goroutine may call it.
func (s *Sampler) ReadEvents(evs []record.Event) (int, error) {
	for {
		if err := s.events.read(&s.eventRaw); err != nil && !errors.Is(err, ErrIdle) {
			return 0, err
		} else if err != nil {
			continue
		}
		n := 0
		for more := true; more; more = n < len(evs) && s.events.take(&s.eventRaw) == nil {
			if parseEvent(&evs[n], s.eventRaw) == nil {
				n++
			}
		}
		if n > 0 {
			s.events.hurry()
			return n, nil
		}
	}
}

// Scan calls visit for every process that the reader's PID namespace sees.
func (s *Sampler) Scan(visit func(record.Event)) error {
	it, err := link.AttachIter(link.IterOptions{Program: s.objs.ScanProcesses})
	if err != nil {
		return fmt.Errorf("attach process iterator: %w", err)
	}
	defer it.Close()
	r, err := it.Open()
	if err != nil {
		return fmt.Errorf("open process iterator: %w", err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read process iterator: %w", err)
	}
	for ; len(all) >= eventBytes; all = all[eventBytes:] {
		var ev record.Event
		if err := parseEvent(&ev, all[:eventBytes]); err != nil {
			return fmt.Errorf("read process iterator: %w", err)
		}
		visit(ev)
	}
	return nil
}
