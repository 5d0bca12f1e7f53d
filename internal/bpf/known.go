//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A knownProcess is what the BPF programs know of a process. Guarded by Sampler.processesMu.
type knownProcess struct {
	entry  record.ProcessEntry
	chunks uint32 // of entry.List; 0 if that is another process's
	begun  bool   // it was in the map before anything was told
}

// known returns what the programs know of a process. One of which nothing was told may have
// begun with what its parent or others of its program have.
func (s *Sampler) known(id record.ProcessID) knownProcess {
	k, told := s.processes[id]
	if told {
		return k
	}
	var inherited record.ProcessEntry
	if s.objs.Processes.Lookup(&id, &inherited) != nil {
		return k
	}
	seal := inherited.Seal
	if sealProcess(&id, &inherited); inherited.Seal == seal {
		k.entry, k.begun = inherited, true
	}
	return k
}

// tell tells what is known of a process. If it cannot be told, what was told before stays.
func (s *Sampler) tell(id record.ProcessID, k knownProcess) error {
	e := &k.entry
	// Where nobody tells mappings, an entry says that the process was looked at: else each sample of it would ask for that.
	if !e.Labelled && !e.Filtered && e.List == 0 && e.Runtime == 0 && !s.config.FramePointersOnly {
		return s.forget(id, k)
	}
	_, told := s.processes[id]
	if err := s.put(id, e, told || k.begun); err != nil {
		return fmt.Errorf("tell of process %d: %w", id.TGID, err)
	}
	s.processes[id] = k
	return nil
}

// put sets the entry of a process. One that was not there may just have begun with what its parent or others
// of its program have: that stays where the entry says nothing else.
func (s *Sampler) put(id record.ProcessID, e *record.ProcessEntry, there bool) error {
	e.BySample = false
	sealProcess(&id, e)
	if there {
		return s.objs.Processes.Put(&id, e)
	}
	err := s.objs.Processes.Update(&id, e, ebpf.UpdateNoExist)
	if !errors.Is(err, ebpf.ErrKeyExist) {
		return err
	}
	begun := s.known(id).entry
	e.Labelled = e.Labelled || begun.Labelled
	if e.Runtime == 0 {
		e.Runtime = begun.Runtime
	}
	if e.List == 0 {
		e.List, e.Mappings, e.ExecPages = begun.List, begun.Mappings, begun.ExecPages
	}
	sealProcess(&id, e)
	return s.objs.Processes.Put(&id, e)
}

// Forget takes back all that was set for a process that has ended, its mappings and its runtime included. Unknown
// processes are no error. What was not set for it, but inherited, the programs have removed.
func (s *Sampler) Forget(id record.ProcessID) error {
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k, told := s.processes[id]
	if !told {
		return nil
	}
	return s.forget(id, k)
}

// ForgetRunning is Forget for a process that may go on to run. It also takes back what the process has begun with,
// which takes room as long as it runs. A process that ends or executes a program at that moment takes it back, too.
func (s *Sampler) ForgetRunning(id record.ProcessID) error {
	s.processesMu.Lock()
	defer s.processesMu.Unlock()
	k := s.known(id)
	if k == (knownProcess{}) {
		return nil // as most
	}
	return s.forget(id, k)
}

func (s *Sampler) forget(id record.ProcessID, k knownProcess) error {
	delete(s.processes, id)
	err := remove(s.objs.Processes, &id)
	if k.entry.Labelled {
		err = errors.Join(err, remove(s.objs.LabelSources, &id))
	}
	if k.entry.Runtime != 0 {
		err = errors.Join(err, remove(s.objs.Runtimes, &id))
	}
	if err = errors.Join(err, s.removeChunks(k)); err != nil {
		return fmt.Errorf("forget process %d: %w", id.TGID, err)
	}
	return nil
}
