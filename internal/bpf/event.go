//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"unsafe"

	"github.com/cilium/ebpf/link"
)

// EventKind is what happened to a process: enum event_kind of src/record.h.
type EventKind uint8

// Kinds of events.
const (
	EventExists EventKind = EventKind(profilerEventKindEVENT_EXISTS) // from Scan
	EventExec   EventKind = EventKind(profilerEventKindEVENT_EXEC)
	EventFork   EventKind = EventKind(profilerEventKindEVENT_FORK)
	EventExit   EventKind = EventKind(profilerEventKindEVENT_EXIT)
	// EventContextNamed: the process publishes a process context (OTEP 4719) about now.
	// ContextEvents tells whether there are such events.
	EventContextNamed EventKind = EventKind(profilerEventKindEVENT_CONTEXT_NAMED)
)

// ProcessEvent tells of the life of one process.
type ProcessEvent struct {
	Kind EventKind
	// TimeNs is CLOCK_MONOTONIC.
	TimeNs  uint64
	Process ProcessID
	// Parent of a fork: the process whose memory was copied.
	Parent ProcessID
	// PID as the reader's PID namespace sees it; 0: not visible there.
	PID          uint32
	KernelThread bool
	// Program that runs; EventExec only.
	Program FileKey
	// Path given to execve, perhaps relative, cut after 255 bytes; EventExec only.
	Path string
}

func (ev *ProcessEvent) parse(b []byte) error {
	var raw profilerProcessEvent
	if len(b) < int(unsafe.Sizeof(raw)) {
		return &FormatError{"process event of bytes", len(b)}
	}
	if _, err := binary.Decode(b, binary.NativeEndian, &raw); err != nil {
		return err
	}
	*ev = ProcessEvent{
		Kind:         EventKind(raw.Kind),
		TimeNs:       raw.TimeNs,
		Process:      raw.Process.processID(),
		Parent:       raw.Parent.processID(),
		PID:          raw.Pid,
		KernelThread: raw.KernelThread != 0,
		Program:      raw.Program.fileKey(),
	}
	if n := int(raw.PathBytes); n > 0 && n < execPathBytes {
		ev.Path = string(bytes.Clone(b[unsafe.Offsetof(raw.Path):][:n]))
	}
	return nil
}

// ReadEvent waits for the next event of a process. It returns ErrClosed after
// Close. Only one goroutine may call it.
func (s *Sampler) ReadEvent(ev *ProcessEvent) error {
	for {
		if err := s.events.read(&s.eventRaw); err != nil {
			return err
		}
		if err := ev.parse(s.eventRaw.RawSample); err == nil {
			return nil
		}
	}
}

// Scan calls visit for every process that the reader's PID namespace sees.
func (s *Sampler) Scan(visit func(ProcessEvent)) error {
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
	size := int(unsafe.Sizeof(profilerProcessEvent{}))
	all, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("read process iterator: %w", err)
	}
	for ; len(all) >= size; all = all[size:] {
		var ev ProcessEvent
		if err := ev.parse(all[:size]); err != nil {
			return fmt.Errorf("read process iterator: %w", err)
		}
		visit(ev)
	}
	return nil
}
