//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// noSlot is a slot without a table.
const noSlot = record.MaxUnwindTables

// unwindList is what the kernel knows of a process's mappings. Guarded by Sampler.listsMu.
type unwindList struct {
	id     uint64
	chunks uint32
}

// SetUnwindMappings replaces what is known of a process's mappings, which are
// sorted by address, while it had so many pages mapped executable and not writable. Whenever
// it has another number of them, what it maps is looked for in the kernel. None is news, too:
// all code of the process has frame pointers. More than MaxUnwindMappings is an error. After
// an error nothing is known of them: what was known before may not be true any more.
func (s *Sampler) SetUnwindMappings(id record.ProcessID, mappings []record.UnwindMapping, execPages uint64) error {
	if len(mappings) > record.MaxUnwindMappings {
		return fmt.Errorf("set mappings of process %d: %d mappings, at most %d", id.TGID, len(mappings), record.MaxUnwindMappings)
	}
	s.listsMu.Lock()
	defer s.listsMu.Unlock()
	s.listID++
	list := unwindList{id: s.listID}
	for len(mappings) > int(list.chunks)*record.UnwindChunkMappings {
		chunk := s.chunk(list.id, mappings[list.chunks*record.UnwindChunkMappings:])
		if err := s.objs.UnwindMappings.Put(record.UnwindChunkKey{List: list.id, Chunk: list.chunks}, chunk); err != nil {
			return errors.Join(fmt.Errorf("set mappings of process %d: %w", id.TGID, err), s.removeList(list), s.forgetMappings(id))
		}
		list.chunks++
	}
	known := record.UnwindList{ID: list.id, Count: uint32(len(mappings)), ExecPages: execPages, Runtime: s.runtimes[id]}
	sealList(&id, &known)
	if err := s.objs.UnwindLists.Put(&id, &known); err != nil {
		return errors.Join(fmt.Errorf("set mappings of process %d: %w", id.TGID, err), s.removeList(list), s.forgetMappings(id))
	}
	old := s.lists[id]
	s.lists[id] = list
	return s.removeList(old)
}

func (s *Sampler) chunk(list uint64, mappings []record.UnwindMapping) *record.UnwindChunk {
	c := &record.UnwindChunk{List: list}
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	for i := range min(len(mappings), record.UnwindChunkMappings) {
		c.Mappings[i] = mappings[i]
		c.Mappings[i].Slot = noSlot
		if table, ok := s.tables.slots[mappings[i].Table]; ok {
			c.Mappings[i].Slot = table.slot
		}
	}
	return c
}

func (s *Sampler) removeList(l unwindList) error {
	var errs []error
	for i := range l.chunks {
		err := s.objs.UnwindMappings.Delete(record.UnwindChunkKey{List: l.id, Chunk: i})
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("remove mappings: %w", err))
		}
	}
	return errors.Join(errs...)
}

// SetRuntime tells of the language runtime of a process, before SetUnwindMappings, which has
// it looked at. Kind RuntimeNone: it has none.
func (s *Sampler) SetRuntime(id record.ProcessID, runtime record.RuntimeProcess) error {
	s.listsMu.Lock()
	defer s.listsMu.Unlock()
	if runtime.Kind == record.RuntimeNone {
		return s.forgetRuntime(id)
	}
	sealRuntime(&id, &runtime)
	if err := s.objs.Runtimes.Put(&id, &runtime); err != nil {
		return fmt.Errorf("set runtime of process %d: %w", id.TGID, err)
	}
	s.runtimes[id] = runtime.Kind
	return nil
}

func (s *Sampler) forgetRuntime(id record.ProcessID) error {
	delete(s.runtimes, id)
	// A child has its parent's, of which only the sampling programs know.
	if err := s.objs.Runtimes.Delete(&id); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget runtime of process %d: %w", id.TGID, err)
	}
	return nil
}

// ForgetMappings takes back what SetUnwindMappings and SetRuntime did. Unknown processes are no error.
func (s *Sampler) ForgetMappings(id record.ProcessID) error {
	s.listsMu.Lock()
	defer s.listsMu.Unlock()
	var err error
	if _, known := s.runtimes[id]; known {
		err = s.forgetRuntime(id)
	}
	if _, known := s.lists[id]; known {
		err = errors.Join(err, s.forgetMappings(id))
	}
	return err
}

func (s *Sampler) forgetMappings(id record.ProcessID) error {
	err := s.objs.UnwindLists.Delete(&id)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		err = nil // the kernel removes it when the process exits
	}
	old := s.lists[id]
	delete(s.lists, id)
	return errors.Join(err, s.removeList(old))
}
