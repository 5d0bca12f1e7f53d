//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// LabelSource tells the programs where the threads of a process publish labels.
type LabelSource struct {
	// ABI is enum label_abi, Kind is enum tls_kind of src/record.h.
	ABI, Kind uint8
	// Offset from the thread pointer (static) or within the TLS block (DTV).
	Offset int64
	// Module id and the generation that the DTV must have reached; DTV kinds only.
	Module, Generation uint64
	// V8Field and V8MapType are those of the V8 that runs; Node.js only.
	V8Field   uint8
	V8MapType uint16
	// Go is where to find the labels of a goroutine; Go only.
	Go GoLayout
}

// GoLayout has offsets in Go's runtime.g and runtime.m.
type GoLayout struct {
	GM, GLabels    uint16 // g.m, g.labels
	MProcID, MCurG uint16 // m.procid, m.curg
	Map            bool   // labels are a map, as before Go 1.24
}

// SetLabelSources replaces the label sources of a process, of which samples are
// wanted again if they were not. More than MaxLabelSources is an error.
func (s *Sampler) SetLabelSources(id ProcessID, sources []LabelSource) error {
	if len(sources) > MaxLabelSources {
		return fmt.Errorf("set label sources of process %d: %d sources, at most %d", id.TGID, len(sources), MaxLabelSources)
	}
	entry := entryOf(sources, id.TGID)
	key := id.key()
	if err := s.objs.Processes.Put(&key, &entry); err != nil {
		return fmt.Errorf("set label sources of process %d: %w", id.TGID, err)
	}
	return nil
}

// entryOf makes an entry whose key the programs know by owner.
func entryOf(sources []LabelSource, owner uint32) profilerProcessEntry {
	entry := profilerProcessEntry{NumSources: uint8(len(sources)), Owner: owner}
	for i, src := range sources {
		entry.Sources[i] = src.entry()
	}
	return entry
}

// FileKey stands for the contents of a file, as the kernel tells them. It can be
// compared and given back; zero is none.
type FileKey struct {
	Inode, Size      uint64
	ChangedSec       int64
	ChangedNsec, Dev uint32
}

func (k FileKey) key() *profilerFileKey {
	return &profilerFileKey{
		Inode: k.Inode, Size: k.Size, ChangedS: k.ChangedSec, ChangedNs: k.ChangedNsec, Dev: k.Dev,
	}
}

func (k profilerFileKey) fileKey() FileKey {
	return FileKey{
		Inode: k.Inode, Size: k.Size, ChangedSec: k.ChangedS, ChangedNsec: k.ChangedNs, Dev: k.Dev,
	}
}

// SetProgram has each process that executes a program from now on begin with these
// label sources. If they are presumed, its samples say so (Record.Presumed) until
// SetLabelSources is called for the process. The kernel forgets programs that have not
// been executed for the longest time when there are too many.
func (s *Sampler) SetProgram(program FileKey, sources []LabelSource, presumed bool) error {
	if len(sources) > MaxLabelSources {
		return fmt.Errorf("set label sources of a program: %d sources, at most %d", len(sources), MaxLabelSources)
	}
	entry := entryOf(sources, uint32(program.Inode))
	if presumed {
		entry.Presumed = 1
	}
	if err := s.objs.Programs.Put(program.key(), &entry); err != nil {
		return fmt.Errorf("set label sources of a program: %w", err)
	}
	return nil
}

// ForgetProgram takes back what SetProgram did. An unknown program is no error.
func (s *Sampler) ForgetProgram(program FileKey) error {
	err := s.objs.Programs.Delete(program.key())
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget a program: %w", err)
	}
	return nil
}

// Filter tells that no samples of a process are wanted: they are counted and nothing
// of them is read. It has an effect with Config.SelectTargets only.
func (s *Sampler) Filter(id ProcessID) error {
	key := id.key()
	if err := s.objs.Processes.Put(&key, &profilerProcessEntry{Filtered: 1, Owner: id.TGID}); err != nil {
		return fmt.Errorf("filter process %d: %w", id.TGID, err)
	}
	return nil
}

// entry is what the programs see.
func (src *LabelSource) entry() profilerLabelSource {
	e := profilerLabelSource{
		Offset: src.Offset, Module: src.Module, Generation: src.Generation, Abi: src.ABI, Kind: src.Kind,
		V8Field: src.V8Field, V8MapType: src.V8MapType,
		Go: profilerGoLayout{G_m: src.Go.GM, G_labels: src.Go.GLabels, M_procid: src.Go.MProcID, M_curg: src.Go.MCurG},
	}
	if src.Go.Map {
		e.GoMap = 1
	}
	return e
}

// Forget removes what was set for a process. Unknown processes are no error.
func (s *Sampler) Forget(id ProcessID) error {
	key := id.key()
	if err := s.objs.Processes.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("forget process %d: %w", id.TGID, err)
	}
	return nil
}
