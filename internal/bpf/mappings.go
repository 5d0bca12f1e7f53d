//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// noSlot is a slot without a table.
const noSlot = record.MaxUnwindTables

// SetUnwindMappings replaces what is known of a process's mappings, which are
// sorted by address, while it had so many pages mapped executable and not writable. Whenever
// it has another number of them, what it maps is looked for in the kernel. None is news, too:
// all code of the process has frame pointers. More than MaxUnwindMappings is an error. After
// an error nothing is known of them, or what was known before.
func (s *Sampler) SetUnwindMappings(id record.ProcessID, mappings []record.UnwindMapping, execPages uint64) error {
	if len(mappings) > record.MaxUnwindMappings {
		return fmt.Errorf("set mappings of process %d: %d mappings, at most %d", id.TGID, len(mappings), record.MaxUnwindMappings)
	}
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k := s.known(id)
	before := k
	s.listID++
	k.entry.List, k.entry.Mappings, k.entry.ExecPages, k.chunks = s.listID, uint32(len(mappings)), execPages, 0
	for len(mappings) > int(k.chunks)*record.UnwindChunkMappings {
		chunk := s.chunk(s.listID, mappings[k.chunks*record.UnwindChunkMappings:])
		if err := s.objs.UnwindMappings.Put(record.UnwindChunkKey{List: s.listID, Chunk: k.chunks}, chunk); err != nil {
			return errors.Join(fmt.Errorf("set mappings of process %d: %w", id.TGID, err), s.removeChunks(k), s.removeList(id, before))
		}
		k.chunks++
	}
	if err := s.tell(id, k); err != nil {
		return errors.Join(err, s.removeChunks(k))
	}
	return s.removeChunks(before)
}

func (s *Sampler) chunk(list uint64, mappings []record.UnwindMapping) *record.UnwindChunk {
	c := &record.UnwindChunk{List: list}
	s.slotsMu.Lock()
	defer s.slotsMu.Unlock()
	for i := range min(len(mappings), record.UnwindChunkMappings) {
		c.Mappings[i] = mappings[i]
		c.Mappings[i].Slot = noSlot
		if table, ok := s.tables.slots[mappings[i].Table]; ok {
			c.Mappings[i].Slot = table.slot
		}
	}
	return c
}

// removeChunks removes those of a process's list.
func (s *Sampler) removeChunks(k knownProcess) error {
	var errs []error
	for i := range k.chunks {
		if err := remove(s.objs.UnwindMappings, record.UnwindChunkKey{List: k.entry.List, Chunk: i}); err != nil {
			errs = append(errs, fmt.Errorf("remove mappings: %w", err))
		}
	}
	return errors.Join(errs...)
}

// removeList has nothing known of a process's mappings.
func (s *Sampler) removeList(id record.ProcessID, k knownProcess) error {
	before := k
	k.entry.List, k.entry.Mappings, k.entry.ExecPages, k.chunks = 0, 0, 0, 0
	return errors.Join(s.tell(id, k), s.removeChunks(before))
}

// SetRuntime tells of the language runtime of a process. Kind RuntimeNone: it has none. After an
// error it has none.
func (s *Sampler) SetRuntime(id record.ProcessID, runtime record.RuntimeProcess) error {
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k := s.known(id)
	if runtime.Kind == record.RuntimeNone {
		return s.removeRuntime(id, k)
	}
	sealRuntime(&id, &runtime)
	if err := s.objs.Runtimes.Put(&id, &runtime); err != nil {
		return errors.Join(fmt.Errorf("set runtime of process %d: %w", id.TGID, err), s.removeRuntime(id, k))
	}
	k.entry.Runtime = uint8(runtime.Kind)
	if err := s.tell(id, k); err != nil {
		return errors.Join(err, remove(s.objs.Runtimes, &id))
	}
	return nil
}

// removeRuntime has a process without a language runtime.
func (s *Sampler) removeRuntime(id record.ProcessID, k knownProcess) error {
	if k.entry.Runtime == 0 {
		return nil
	}
	k.entry.Runtime = 0
	return errors.Join(s.tell(id, k), remove(s.objs.Runtimes, &id))
}

// ForgetMappings takes back what SetUnwindMappings and SetRuntime did. Unknown processes are no error.
func (s *Sampler) ForgetMappings(id record.ProcessID) error {
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k, told := s.processes[id]
	if !told {
		return nil
	}
	runtime := k.entry.Runtime
	k.entry.Runtime = 0
	err := s.removeList(id, k)
	if runtime != 0 {
		err = errors.Join(err, remove(s.objs.Runtimes, &id))
	}
	return err
}
