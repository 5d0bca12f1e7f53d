package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

const (
	// noticeAgain is after how many such intervals in a row it is said again.
	noticeAgain = 10
	// noticeMatches is after how many intervals rules and selectors are named that have
	// matched nothing.
	noticeMatches = 5
	// noticeBusy hits of an interval that interrupted something make the CPUs busy, and no
	// fewer than a hundredth of all hits.
	noticeBusy = 20
)

// notices says in the log what an operator would otherwise have to find out: that nothing is
// emitted although the CPUs are busy, and why, and which rules and selectors match nothing.
type notices struct {
	log       *zap.Logger
	rules     []labels.Rule
	targets   *TargetOptions
	selectors *selectorMatches
	interval  time.Duration
	patience  int // intervals in which samples may only wait for their report

	intervals int
	last      StreamSnapshot // at the end of the last interval whose samples did not only wait
	waiting   int            // intervals in which samples only waited, since one was emitted
	silent    int            // further intervals without a sample emitted, in a row
}

// look is called at the end of each interval.
func (n *notices) look(s *Snapshot) {
	n.intervals++
	n.emission(s.CPU(), &n.last)
	if n.intervals == noticeMatches {
		n.matches(s.Labels.RuleMatches)
	}
}

func (n *notices) emission(now, before *StreamSnapshot) {
	hits := now.Hits - before.Hits
	busy := hits - (now.Filtered[FilterIdle] - before.Filtered[FilterIdle])
	switch {
	case now.Emitted > before.Emitted:
		if n.silent > 0 {
			n.log.Info("Samples are emitted again.")
		}
		n.silent, n.waiting = 0, 0
	case busy < noticeBusy || busy < hits/100:
		// There is nothing to emit.
	case n.waiting < n.patience && now.Pending() > 0:
		n.waiting++
		return // what becomes of them is looked at with the next interval's
	default:
		if n.silent%noticeAgain == 0 {
			n.log.Warn("Nothing was emitted for a minute, though the CPUs were busy.",
				zap.String("why", n.why(now, before)), zap.Int64("samples", busy))
		}
		n.silent++
	}
	n.last = *now
}

// reportShare of an interval is how much later than a report interval a report may come.
const reportShare = 4

// reportIntervals is how many whole intervals may pass between two reports. Reports that come more
// often than intervals end leave none without one.
func reportIntervals(o *Options) int {
	return int((o.ReportInterval + o.NoticeInterval/reportShare) / o.NoticeInterval)
}

// why names what became of most samples of processes that are wanted; if there were none, why
// most were not.
func (n *notices) why(now, before *StreamSnapshot) string {
	most, why := int64(0), ""
	for r := range now.Dropped {
		if count := now.Dropped[r] - before.Dropped[r]; count > most {
			most, why = count, whyDropped(DropReason(r))
		}
	}
	if why != "" {
		return why
	}
	why = "the samples are still on their way"
	for r := range now.Filtered {
		if count := now.Filtered[r] - before.Filtered[r]; FilterReason(r) != FilterIdle && count > most {
			most, why = count, n.whyFiltered(FilterReason(r))
		}
	}
	return why
}

func (n *notices) whyFiltered(r FilterReason) string {
	switch {
	case r == FilterTarget && len(n.targets.Selection.Include)+len(n.targets.Selection.Exclude) == 0:
		return "targets::labelled_only is set, and no process that ran has a label source; labelprof inspect PID says why one has none"
	case r == FilterTarget && n.targets.LabelledOnly:
		return "no process that ran is selected by targets and has a label source; labelprof inspect PID says why one has none"
	case r == FilterTarget:
		return "targets select no process that ran"
	case r == FilterUnknownProcess:
		return "of the processes that ran it was not known in time whether targets select them: they ended too soon, or cannot be looked at"
	}
	return "samples were left out: " + r.String()
}

func whyDropped(r DropReason) string {
	switch r {
	case DropRefused:
		return "the next consumer refused all profiles; the log of the exporters says why"
	case DropPendingFull:
		return "the next consumer takes longer than samples can wait, and they were dropped: pending_full"
	case DropNoMemory:
		return "max_memory_bytes is reached, and samples were dropped: the metric memory_used says by part what holds it"
	}
	return "samples were dropped: " + r.String()
}

const selectorUnmatched = "A selector of targets has matched no process for five minutes."

// matches names the rules and selectors that have matched nothing.
func (n *notices) matches(rules []int64) {
	for i, matched := range rules {
		if matched == 0 && i < len(n.rules) {
			n.log.Info("A rule of labels has matched nothing for five minutes.",
				zap.Int("rule", i), zap.String("key", n.rules[i].Key), zap.Stringer("action", n.rules[i].Action))
		}
	}
	include, exclude := n.selectors.unmatched()
	for _, selector := range include {
		n.log.Info(selectorUnmatched, zap.String("selector", selector))
	}
	for _, selector := range exclude { // processes that are not to be sampled may be
		n.log.Warn(selectorUnmatched, zap.String("selector", selector))
	}
}

// started says what is sampled, and how.
func (n *notices) started(o *Options, cpus int, contextEvents bool) {
	unwind := "unwind rows"
	switch {
	case o.Unwind.Skip:
		unwind = "none"
	case o.Unwind.FramePointersOnly:
		unwind = "frame pointers"
	}
	fields := []zap.Field{
		zap.Int("cpus", cpus), zap.Int("samples_per_second", o.SamplesPerSecond), zap.Bool("labels", !o.Labels.Skip),
		zap.String("stacks", unwind), zap.Bool("context_events", contextEvents),
		zap.String("targets", targetWords(&o.Targets)),
	}
	if o.OffCPU.Threshold > 0 {
		fields = append(fields, zap.Float64("off_cpu_threshold", o.OffCPU.Threshold))
	}
	n.log.Info("Sampling has started.", fields...)
}

func targetWords(o *TargetOptions) string {
	if !o.selects() {
		return "all processes"
	}
	var words []string
	for _, list := range []struct {
		name      string
		selectors []targets.Selector
	}{{"included", o.Selection.Include}, {"excluded", o.Selection.Exclude}} {
		if len(list.selectors) > 0 {
			words = append(words, fmt.Sprintf("%s by %d", list.name, len(list.selectors)))
		}
	}
	if o.LabelledOnly {
		words = append(words, "labelled only")
	}
	return strings.Join(words, ", ")
}

// run calls look at the end of each interval, until stopped is closed.
func (n *notices) run(stopped <-chan struct{}, snapshot func() Snapshot) {
	tick := time.NewTicker(n.interval)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-tick.C:
			s := snapshot()
			n.look(&s)
		}
	}
}

func newNotices(o *Options, matches *selectorMatches) *notices {
	return &notices{
		log: o.Logger, rules: slices.Clone(o.Labels.Rules), targets: &o.Targets, selectors: matches, interval: o.NoticeInterval,
		patience: reportIntervals(o),
		last:     StreamSnapshot{Kind: profile.KindCPU},
	}
}
