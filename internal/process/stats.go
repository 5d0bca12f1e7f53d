//go:build linux

package process

import "sync/atomic"

// Stats counts what the table has done since it was made, and what it holds.
type Stats struct {
	Processes   int // in the table
	Queued      int // waiting for a worker
	Files       int // cached
	Descriptors int // kept open
	Contexts    int // processes with a process context

	Loads         uint64 // processes read as a whole
	Rereads       uint64 // processes whose mappings were read again
	Retries       uint64 // of these, because a library was still being loaded
	LoadErrors    uint64 // processes that could not be read
	FileErrors    uint64 // mapped files that could not be read, or the label sources in them
	Discarded     uint64 // readings that may have been of the next image
	Refused       uint64 // processes for which there was no room, or that had to make some
	MappingsCut   uint64 // readings with more executable mappings than are kept, or more that are gone
	PublishErrors uint64
	Lost          uint64 // processes whose exit was noticed before an event told of it
	Stuck         uint64 // processes that were given up because a look at them hung, and workers that build rows
	Hanging       int    // of these processes, those of which a look has not ended

	Due          int    // of those queued, for now
	RowsWaiting  int    // files that wait for their rows to be built
	Reduced      uint64 // processes of which not all was kept, for want of memory
	FilesDropped uint64 // files that were forgotten, for want of memory
	FilesUnkept  uint64 // files that were not kept open, since others wait to be closed

	FunctionsRead    uint64 // of language runtimes
	FunctionsGone    uint64 // that had gone before they were read
	FunctionsRefused uint64 // that found no room
	// Files with a language runtime that is not supported, or that cannot be read.
	RuntimesUnsupported, RuntimesUnreadable uint64

	RowFiles    int    // files with unwind rows
	RowBytes    int    // of these
	RowsBuilt   uint64 // files whose unwind rows were loaded
	RowsFailed  uint64 // files whose unwind rows could not be read or loaded
	RowsRefused uint64 // files whose unwind rows found no room

	ContextReads  uint64 // process contexts read, each update again
	ContextErrors uint64 // process contexts that could not be read or made no sense, and attributes left out, also of environments
	KeyConflicts  uint64 // thread context keys that changed their meaning
}

type counts struct {
	loads, rereads, retries, loadErrors, fileErrors, discarded atomic.Uint64
	refused, mappingsCut, publishErrors, lost, stuck           atomic.Uint64
	contextReads, contextErrors, keyConflicts                  atomic.Uint64
	reduced, filesDropped                                      atomic.Uint64
	functionsRead, functionsGone, functionsRefused             atomic.Uint64
	runtimesUnsupported, runtimesUnreadable                    atomic.Uint64
}

// Stats returns the counts as of now.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	processes, queued := len(t.byID), len(t.jobs.queue)+t.jobs.yielded()
	contexts, due, now := 0, t.jobs.yielded(), t.now()
	hanging := t.hanging.hung
	for _, p := range t.jobs.queue {
		if p.dueNs <= now {
			due++
		}
	}
	for _, p := range t.byPID {
		if p.contextKnown.Load() {
			contexts++
		}
	}
	t.mu.RUnlock()
	rows := t.rows.Stats()
	return Stats{
		Hanging:      hanging,
		Due:          due,
		RowsWaiting:  rows.Waiting,
		Reduced:      t.counts.reduced.Load(),
		FilesDropped: t.counts.filesDropped.Load(),
		FilesUnkept:  t.files.Unkept(),

		FunctionsRead:       t.counts.functionsRead.Load(),
		FunctionsGone:       t.counts.functionsGone.Load(),
		FunctionsRefused:    t.counts.functionsRefused.Load(),
		RuntimesUnsupported: t.counts.runtimesUnsupported.Load(), RuntimesUnreadable: t.counts.runtimesUnreadable.Load(),

		RowFiles:    rows.Files,
		RowBytes:    rows.Bytes,
		RowsBuilt:   rows.Built,
		RowsFailed:  rows.Failed,
		RowsRefused: rows.Refused,

		Processes: processes, Queued: queued,
		Files: t.files.Len(), Descriptors: t.files.Descriptors(), Contexts: contexts,
		Loads:         t.counts.loads.Load(),
		Rereads:       t.counts.rereads.Load(),
		Retries:       t.counts.retries.Load(),
		LoadErrors:    t.counts.loadErrors.Load(),
		FileErrors:    t.counts.fileErrors.Load(),
		Discarded:     t.counts.discarded.Load(),
		Refused:       t.counts.refused.Load(),
		MappingsCut:   t.counts.mappingsCut.Load(),
		PublishErrors: t.counts.publishErrors.Load() + rows.Unplaced,
		Lost:          t.counts.lost.Load(),
		Stuck:         t.counts.stuck.Load() + rows.Stuck,
		ContextReads:  t.counts.contextReads.Load(),
		ContextErrors: t.counts.contextErrors.Load(),
		KeyConflicts:  t.counts.keyConflicts.Load(),
	}
}
