//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// SetLabelSources replaces the label sources of a process, of which samples are
// wanted again if they were not. More than MaxLabelSources is an error.
func (s *Sampler) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	if len(sources) > record.MaxLabelSources {
		return fmt.Errorf("set label sources of process %d: %d sources, at most %d", id.TGID, len(sources), record.MaxLabelSources)
	}
	entry := entryOf(sources)
	sealProcess(&id, &entry)
	if err := s.objs.Processes.Put(&id, &entry); err != nil {
		return fmt.Errorf("set label sources of process %d: %w", id.TGID, err)
	}
	return nil
}

func entryOf(sources []record.LabelSource) record.ProcessEntry {
	entry := record.ProcessEntry{Head: record.ProcessHead{NumSources: uint8(len(sources))}}
	copy(entry.Sources[:], sources)
	return entry
}

// SetProgram has each process that executes a program from now on begin with these
// label sources. If it is early enough to look at one when it is sampled (record.LookWhenSampled),
// events of their start can wait: the first sample of each is told (record.EventSampled). If they are
// presumed, its samples say so (Record.Presumed) until SetLabelSources is called for the process. The kernel forgets programs that have not
// been executed for the longest time when there are too many.
func (s *Sampler) SetProgram(program record.FileKey, sources []record.LabelSource, presumed bool) error {
	if len(sources) > record.MaxLabelSources {
		return fmt.Errorf("set label sources of a program: %d sources, at most %d", len(sources), record.MaxLabelSources)
	}
	entry := entryOf(sources)
	entry.Head.Presumed, entry.Head.BySample = presumed, record.LookWhenSampled(sources, presumed)
	sealProcess(&program, &entry)
	if err := s.objs.Programs.Put(&program, &entry); err != nil {
		return fmt.Errorf("set label sources of a program: %w", err)
	}
	return nil
}

// ForgetProgram takes back what SetProgram did. An unknown program is no error.
func (s *Sampler) ForgetProgram(program record.FileKey) error {
	err := s.objs.Programs.Delete(&program)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget a program: %w", err)
	}
	return nil
}

// Filter tells that no samples of a process are wanted: they are counted and nothing
// of them is read. It has an effect with Config.SelectTargets only.
func (s *Sampler) Filter(id record.ProcessID) error {
	entry := record.ProcessEntry{Head: record.ProcessHead{Filtered: true}}
	sealProcess(&id, &entry)
	if err := s.objs.Processes.Put(&id, &entry); err != nil {
		return fmt.Errorf("filter process %d: %w", id.TGID, err)
	}
	return nil
}

// Forget removes what was set for a process. Unknown processes are no error.
func (s *Sampler) Forget(id record.ProcessID) error {
	if err := s.objs.Processes.Delete(&id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget process %d: %w", id.TGID, err)
	}
	return nil
}
