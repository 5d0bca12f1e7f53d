//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// SetLabelSources replaces the label sources of a process, of which samples are
// wanted again if they were not. More than MaxLabelSources is an error. After an error the
// process has none.
func (s *Sampler) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	if len(sources) > record.MaxLabelSources {
		return fmt.Errorf("set label sources of process %d: %d sources, at most %d", id.TGID, len(sources), record.MaxLabelSources)
	}
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k := s.known(id)
	if len(sources) == 0 && k == (knownProcess{}) && !s.config.FramePointersOnly {
		return nil // as most: what their mappings are will be told
	}
	k.entry.Filtered = false
	if len(sources) == 0 {
		return s.removeSources(id, k)
	}
	of := sourcesOf(sources)
	sealSources(&id, &of)
	if err := s.objs.LabelSources.Put(&id, &of); err != nil {
		return errors.Join(fmt.Errorf("set label sources of process %d: %w", id.TGID, err), s.removeSources(id, k))
	}
	k.entry.Labelled = true
	if err := s.tell(id, k); err != nil {
		return errors.Join(err, remove(s.objs.LabelSources, &id))
	}
	return nil
}

func sourcesOf(sources []record.LabelSource) record.LabelSources {
	of := record.LabelSources{Count: uint8(len(sources))}
	copy(of.Source[:], sources)
	return of
}

// removeSources has a process without label sources.
func (s *Sampler) removeSources(id record.ProcessID, k knownProcess) error {
	had := k.entry.Labelled
	k.entry.Labelled = false
	err := s.tell(id, k)
	if had {
		err = errors.Join(err, remove(s.objs.LabelSources, &id))
	}
	return err
}

// SetProgram has each process that executes a program from now on begin with these
// label sources. If it is early enough to look at one when it is sampled (record.LookWhenSampled),
// events of their start can wait: the first sample of each is told (record.EventSampled). If they are
// presumed, its samples say so (Record.Presumed) until SetLabelSources is called for the process. There is room
// for record.MaxPrograms with sources and record.MaxPlainPrograms without.
func (s *Sampler) SetProgram(program record.FileKey, sources []record.LabelSource, presumed bool) error {
	if len(sources) > record.MaxLabelSources {
		return fmt.Errorf("set label sources of a program: %d sources, at most %d", len(sources), record.MaxLabelSources)
	}
	of := sourcesOf(sources)
	of.Presumed, of.BySample = presumed, record.LookWhenSampled(sources, presumed, s.config.OffCPURingBytes > 0)
	sealSources(&program, &of)
	if err := s.objs.Programs.Put(&program, &of); err != nil {
		return fmt.Errorf("set label sources of a program: %w", err)
	}
	return nil
}

// ForgetProgram takes back what SetProgram did. An unknown program is no error.
func (s *Sampler) ForgetProgram(program record.FileKey) error {
	if err := remove(s.objs.Programs, &program); err != nil {
		return fmt.Errorf("forget a program: %w", err)
	}
	return nil
}

// Filter tells that no samples of a process are wanted: they are counted and nothing
// of them is read. It has an effect with Config.SelectTargets only.
func (s *Sampler) Filter(id record.ProcessID) error {
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k := s.known(id)
	k.entry.Filtered = true
	return s.removeSources(id, k)
}

// remove removes an element. One that is not there is no error: the programs remove those of
// processes that end.
func remove(from *ebpf.Map, key any) error {
	if err := from.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}
