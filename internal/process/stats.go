//go:build linux

package process

import (
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
)

// Stats counts what the table has done since it was made, and what it holds.
type Stats struct {
	Processes int // in the table
	Due       int // waiting for a worker now
	Contexts  int // processes with a process context
	Labelled  int // processes with label sources that the sampling programs were told of
	Hanging   int // processes of which a look hangs

	LoadErrors    uint64 // processes that could not be read
	FileErrors    uint64 // mapped files that could not be read, or the label sources in them
	Refused       uint64 // processes for which there was no room, or that had to make some
	MappingsCut   uint64 // readings with more executable mappings than are kept, or more that are gone
	PublishErrors uint64 // with Rows.Unplaced

	Reduced      uint64 // processes of which not all was kept, for want of memory
	FilesDropped uint64 // files that were forgotten, for want of memory
	FilesUnkept  uint64 // files that were not kept open, since others wait to be closed

	FunctionsRead    uint64 // of language runtimes
	FunctionsGone    uint64 // that had gone before they were read
	FunctionsRefused uint64 // that found no room
	// Files with a language runtime that is not supported, or that cannot be read.
	RuntimesUnsupported, RuntimesUnreadable uint64

	Rows executable.RowsStats

	ContextReads  uint64 // process contexts read, each update again
	ContextErrors uint64 // process contexts that could not be read or made no sense, and attributes left out, also of environments
	KeyConflicts  uint64 // thread context keys that changed their meaning

	// The rest is for tests.

	Queued      int    // processes that wait for a worker, also those that are not due yet
	Files       int    // cached
	Descriptors int    // kept open
	Loads       uint64 // processes read as a whole
	Rereads     uint64 // processes whose mappings were read again
	Discarded   uint64 // readings that may have been of the next image
	Lost        uint64 // processes whose exit was noticed before an event told of it
	Stuck       uint64 // processes that were given up because a look at them hung, and workers that build rows
}

type counts struct {
	loads, rereads, loadErrors, fileErrors, discarded atomic.Uint64
	refused, mappingsCut, publishErrors, lost, stuck  atomic.Uint64
	contextReads, contextErrors, keyConflicts         atomic.Uint64
	reduced, filesDropped                             atomic.Uint64
	functionsRead, functionsGone, functionsRefused    atomic.Uint64
	runtimesUnsupported, runtimesUnreadable           atomic.Uint64
}

// Stats returns the counts as of now.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	processes, queued := len(t.byID), len(t.jobs.queue)+t.jobs.yielded()
	contexts, labelled, due, now := 0, 0, t.jobs.yielded(), t.now()
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
		if p.published > 0 {
			labelled++
		}
	}
	t.mu.RUnlock()
	rows := t.rows.Stats()
	c := &t.counts
	return Stats{
		Processes: processes, Due: due, Contexts: contexts, Labelled: labelled, Hanging: hanging,

		LoadErrors:    c.loadErrors.Load(),
		FileErrors:    c.fileErrors.Load(),
		Refused:       c.refused.Load(),
		MappingsCut:   c.mappingsCut.Load(),
		PublishErrors: c.publishErrors.Load() + rows.Unplaced,

		Reduced:      c.reduced.Load(),
		FilesDropped: c.filesDropped.Load(),
		FilesUnkept:  t.files.Unkept(),

		FunctionsRead:       c.functionsRead.Load(),
		FunctionsGone:       c.functionsGone.Load(),
		FunctionsRefused:    c.functionsRefused.Load(),
		RuntimesUnsupported: c.runtimesUnsupported.Load(), RuntimesUnreadable: c.runtimesUnreadable.Load(),

		Rows: rows,

		ContextReads:  c.contextReads.Load(),
		ContextErrors: c.contextErrors.Load(),
		KeyConflicts:  c.keyConflicts.Load(),

		Queued: queued, Files: t.files.Len(), Descriptors: t.files.Descriptors(),
		Loads:     c.loads.Load(),
		Rereads:   c.rereads.Load(),
		Discarded: c.discarded.Load(),
		Lost:      c.lost.Load(),
		Stuck:     c.stuck.Load() + rows.Stuck,
	}
}
