//go:build linux && (amd64 || arm64)

package pipeline

import (
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// Snapshot returns what has been counted so far. It may be called at any time from any
// goroutine, and after Shutdown says what was counted in the end.
func (p *Pipeline) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil {
		return *p.last
	}
	var s Snapshot
	p.read(&s)
	return s
}

// read fills s with the state of the pipeline; see there for the order.
func (p *Pipeline) read(s *Snapshot) {
	c := p.counts
	p.snapshotMetering(&s.Metering)
	for abi := range c.labelReads {
		for o := range c.labelReads[abi] {
			s.LabelReads[abi][o] = c.labelReads[abi][o].Load()
		}
	}
	for o := range c.userStacks {
		s.UserStacks[o] = c.userStacks[o].Load()
	}
	for a := range c.anomalies {
		s.Anomalies[a] = c.anomalies[a].Load()
	}
	s.Labels.readRegistry(p.registry, &c.users, &p.options.Labels)
	table := p.table.Stats()
	s.TrackedProcesses = int64(table.Processes)
	s.Anomalies[labels.AnomalyChangedKey] = int64(table.KeyConflicts)
	s.ContextReads, s.ContextErrors, s.ContextProcesses = int64(table.ContextReads), int64(table.ContextErrors), int64(table.Contexts)
	s.LabelSourceProcesses = int64(table.Labelled)
	s.ProcessLoadErrors = [NumLoadErrorReasons]int64{
		LoadErrorProcess: int64(table.LoadErrors), LoadErrorFile: int64(table.FileErrors),
		LoadErrorNoPlace:     int64(table.Refused + table.FilesUnkept),
		LoadErrorMappingsCut: int64(table.MappingsCut), LoadErrorNotPublished: int64(table.PublishErrors),
	}
	s.UnwindBytes, s.UnwindTables = int64(table.Rows.Bytes), int64(table.Rows.Tables)
	s.UnwindFiles = [NumUnwindResults]int64{
		UnwindLoaded: int64(table.Rows.Built), UnwindFailed: int64(table.Rows.Failed), UnwindNoRoom: int64(table.Rows.Refused),
	}
	symbols := p.output.symbols.stats()
	s.Hanging = [NumHangKinds]int64{HangProcess: int64(table.Hanging), HangFile: int64(symbols.Hanging)}
	s.SymbolProblems = [NumSymbolProblems]int64{
		SymbolFailed: int64(symbols.Failures), SymbolTruncated: int64(symbols.Truncated),
		SymbolTimedOut: int64(symbols.TimedOut), SymbolRefused: int64(symbols.Refused),
	}
	p.snapshotLimits(s, &table)

	s.RuntimeResults = [NumRuntimeResults]int64{
		RuntimeFunctionRead: int64(table.FunctionsRead), RuntimeFunctionGone: int64(table.FunctionsGone),
		RuntimeFunctionNoRoom:  int64(table.FunctionsRefused),
		RuntimeFileUnsupported: int64(table.RuntimesUnsupported), RuntimeFileUnreadable: int64(table.RuntimesUnreadable),
	}
	for _, stream := range p.streams {
		of, counters := stream.snapshot()
		s.Streams[stream.kind] = of
		s.DroppedProcessEvents += int64(counters.EventsDropped + counters.EventsMissed)
		s.DroppedAnnouncements += int64(counters.ContextsRefused)
		s.RuntimeResults[RuntimeStackWhole] += int64(counters.RuntimeWhole)
		s.RuntimeResults[RuntimeStackCut] += int64(counters.RuntimeCut)
		s.RuntimeResults[RuntimeStackNoThread] += int64(counters.RuntimeNoThread)
		s.RuntimeResults[RuntimeStackInvalid] += int64(counters.RuntimeInvalid)
		s.LostLabels = sum(s.LostLabels, loaded(&stream.byUser.lostLabels))
		s.LostStacks = sum(s.LostStacks, loaded(&stream.byUser.lostStacks))
		s.LostFrames = sum(s.LostFrames, loaded(&stream.byUser.lostFrames))
	}
	s.Users = c.users.users() // last: all that were counted are there
}

func (p *Pipeline) snapshotMetering(s *MeteringSnapshot) {
	m, c := p.output.metering, p.counts
	if m == nil {
		return
	}
	s.Enabled, s.Series = true, int64(m.sums.Series())
	for l := range s.Lost {
		s.Lost[l] = loaded(&c.meterLost[l])
	}
	for r := range s.Collections {
		s.Collections[r] = c.collections[r].Load()
	}
}

// snapshotLimits tells how near the limits of the whole pipeline are.
func (p *Pipeline) snapshotLimits(s *Snapshot, table *process.Stats) {
	memory, cpu := p.budgets.memory, p.budgets.cpu.Use()
	for part := range s.Memory {
		s.Memory[part] = memory.Part(budget.Part(part))
	}
	s.BPFMapBytes = int64(p.sampler.MapBytes())
	s.LimitUsed = [NumLimits]float64{
		LimitMemory: float64(memory.Used()) / float64(p.budgets.limits.memory),
		// Unwind rows have a part of it, and go without when that is used up.
		LimitBPFMaps: max(float64(s.BPFMapBytes)/float64(p.budgets.limits.bpfMaps),
			float64(table.Rows.Bytes)/float64(p.options.Unwind.MaxBytes)),
		LimitBackgroundCPU: cpu.Load,
	}
	for w := range s.Background {
		s.Background[w] = cpu.Spent[w].Seconds()
		s.LimitActions[LimitWorkDelayed] += cpu.Delayed[w]
	}
	s.BackgroundLeft[budget.Processes], s.BackgroundLeft[budget.Rows] = int64(table.Due), int64(table.Rows.Waiting)
	for a := range p.counts.limits {
		s.LimitActions[a] += p.counts.limits[a].Load()
	}
	s.LimitActions[LimitFilesDropped] += int64(table.FilesDropped)
	s.LimitActions[LimitProcessesReduced] += int64(table.Reduced)
}
