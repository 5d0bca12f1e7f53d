//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// ErrTooManyTables says that MaxUnwindTables are loaded. It is a unix.ENOSPC.
var ErrTooManyTables = fmt.Errorf("too many unwind tables: %w", unix.ENOSPC)

const (
	pageRules = record.UnwindPageBytes / record.UnwindRuleBytes
	pageWords = record.UnwindPageBytes / 4
)

func pagesOf(n, each int) int { return (n + each - 1) / each }

// tables are the slots of unwind_tables, and what is in file_rows. Guarded by Sampler.tablesMu, and see slotsMu.
type tables struct {
	next  record.TableID
	slots map[record.TableID]loadedTable
	free  []uint32
	bytes int
	used  uint32 // slots that were used at least once
	files map[record.FileKey][]fileRows
}

type loadedTable struct {
	slot          uint32
	m             *ebpf.Map
	bytes, blocks int
	files         []record.FileKey // that it is known for
}

// AddUnwindTable loads a table into the kernel. It costs some milliseconds. The error may be
// ErrTooManyTables, or unix.ENOMEM.
func (s *Sampler) AddUnwindTable(t *record.UnwindTable) (record.TableID, error) {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	slot, ok := s.tables.take()
	if !ok {
		return 0, fmt.Errorf("add unwind table: %w", ErrTooManyTables)
	}
	id := s.tables.next + 1
	m, err := s.loadTable(t, id, slot)
	if err != nil {
		s.tables.free = append(s.tables.free, slot)
		return 0, fmt.Errorf("add unwind table: %w", err)
	}
	s.tables.next = id
	s.setTable(id, loadedTable{slot: slot, m: m, bytes: t.KernelBytes(), blocks: t.Blocks()})
	return id, nil
}

// setTable notes what is known of a table, in place of what was. tablesMu is held.
func (s *Sampler) setTable(id record.TableID, table loadedTable) {
	s.slotsMu.Lock()
	defer s.slotsMu.Unlock()
	s.tables.bytes += table.bytes - s.tables.slots[id].bytes
	s.tables.slots[id] = table
}

// unsetTable forgets a table. tablesMu is held.
func (s *Sampler) unsetTable(id record.TableID) {
	s.slotsMu.Lock()
	defer s.slotsMu.Unlock()
	s.tables.bytes -= s.tables.slots[id].bytes
	delete(s.tables.slots, id)
}

func (t *tables) take() (slot uint32, ok bool) {
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
		return slot, true
	}
	if t.used == record.MaxUnwindTables {
		return 0, false
	}
	t.used++
	return t.used - 1, true
}

func (s *Sampler) loadTable(t *record.UnwindTable, id record.TableID, slot uint32) (*ebpf.Map, error) {
	pages := t.Pages()
	m, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "unwind_table", Type: ebpf.Array, Flags: unix.BPF_F_INNER_MAP,
		KeySize: 4, ValueSize: record.UnwindPageBytes, MaxEntries: uint32(pages),
	})
	if err != nil {
		return nil, err
	}
	w := tableWriter{m: m}
	w.rules(t, id)
	writeWords(&w, t.Index)
	writeWords(&w, t.Rows)
	if w.err == nil {
		w.err = s.objs.UnwindTables.Put(slot, m)
	}
	if w.err != nil {
		m.Close()
		return nil, w.err
	}
	return m, nil
}

// tableWriter fills a table's map page by page.
type tableWriter struct {
	m    *ebpf.Map
	page [record.UnwindPageBytes]byte
	next uint32 // page
	err  error
}

func (w *tableWriter) flush() {
	if w.err == nil {
		w.err = w.m.Put(w.next, w.page[:])
	}
	w.next++
	clear(w.page[:])
}

func (w *tableWriter) rules(t *record.UnwindTable, id record.TableID) {
	rulePages := pagesOf(max(len(t.Rules), 1), pageRules)
	order := binary.NativeEndian
	order.PutUint64(w.page[:], uint64(id))
	order.PutUint32(w.page[8:], uint32(rulePages))
	order.PutUint32(w.page[12:], uint32(rulePages+pagesOf(len(t.Index), pageWords)))
	for i, r := range t.Rules {
		if i == 0 {
			continue // the header has its place
		}
		if i%pageRules == 0 {
			w.flush()
		}
		b := w.page[i%pageRules*record.UnwindRuleBytes:]
		b[0], b[1], b[2], b[3] = byte(r.CFA), r.Arg, byte(r.RA), byte(r.FP)
		order.PutUint32(b[4:], uint32(r.CFAOffset))
		order.PutUint32(b[8:], uint32(r.RAOffset))
		order.PutUint32(b[12:], uint32(r.FPOffset))
	}
	w.flush()
}

func writeWords[T ~uint32](w *tableWriter, words []T) {
	for len(words) > 0 {
		n := min(len(words), pageWords)
		for i, v := range words[:n] {
			binary.NativeEndian.PutUint32(w.page[4*i:], uint32(v))
		}
		words = words[n:]
		w.flush()
	}
}

// RemoveUnwindTable gives its memory back. Mappings that refer to it have no
// rows any more.
//
// The map is closed last: to take it from its slot waits for the programs that look at it
// (maybe_wait_bpf_programs, kernel/bpf/syscall.c), while kernels without the fix of
// CVE-2023-52447 free at once what nothing but the slot has held.
func (s *Sampler) RemoveUnwindTable(id record.TableID) error {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	table, ok := s.tables.slots[id]
	if !ok {
		return nil
	}
	var errs []error
	for _, file := range table.files {
		// What stays refers to a table of another number.
		errs = append(errs, s.forgetFileRows(file, id))
	}
	if err := s.objs.UnwindTables.Delete(table.slot); err != nil {
		return fmt.Errorf("remove unwind table: %w", errors.Join(append(errs, err)...))
	}
	s.unsetTable(id)
	s.tables.free = append(s.tables.free, table.slot)
	if err := errors.Join(append(errs, table.m.Close())...); err != nil {
		return fmt.Errorf("remove unwind table: %w", err)
	}
	return nil
}

// close closes what the slots hold.
func (t *tables) close() error {
	var errs []error
	for id, table := range t.slots {
		errs = append(errs, table.m.Close())
		delete(t.slots, id)
	}
	return errors.Join(errs...)
}
