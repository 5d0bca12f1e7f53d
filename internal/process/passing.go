//go:build linux

package process

import "github.com/customlabels/otelcol-customlabels/internal/record"

// life stands for a process from its fork to its end, whatever it executes.
type life struct {
	tgid    uint32
	startNs uint64
}

func lifeOf(id record.ProcessID) life { return life{id.TGID, id.StartNs} }

// told is what events that are handled together tell of a process.
type told uint8

const (
	toldForked told = 1 << iota
	toldEnded
	toldNeeded // all the same
)

// passing are processes that have begun and ended in events that are handled together. The table
// needs to know one only if it was sampled, and an event tells of a process's first sample
// (record.EventSampled); or if another one that it has begun lives on. Most short programs are not.
type passing struct {
	lives map[life]told
}

// findPassing finds them. The table is locked.
func (t *Table) findPassing(events []record.Event) {
	clear(t.passing.lives)
	if t.opts.OffCPU { // no event tells of its samples
		return
	}
	// An end is the last event of a process; but its last thread may still be sampled.
	for i := len(events) - 1; i >= 0; i-- {
		ev := &events[i]
		switch of := lifeOf(ev.Process); ev.Kind {
		case record.EventExit:
			t.passing.add(of, toldEnded)
		case record.EventFork:
			t.passing.add(of, toldForked)
			if ev.KernelThread || t.byID[ev.Process] != nil { // of samples of the former nothing is told
				t.passing.add(of, toldNeeded)
			}
			if !t.passing.has(ev.Process) {
				t.passing.add(lifeOf(ev.Parent), toldNeeded)
			}
		case record.EventExec:
			if t.byID[ev.Process] != nil || !t.programs.learnt(ev.Program) {
				t.passing.add(of, toldNeeded)
			}
		case record.EventSampled, record.EventContextNamed, record.EventExists:
			t.passing.add(of, toldNeeded)
		}
	}
}

func (p *passing) add(of life, what told) { p.lives[of] |= what }

// has reports whether a process is one of them.
func (p *passing) has(id record.ProcessID) bool { return p.lives[lifeOf(id)] == toldForked|toldEnded }
