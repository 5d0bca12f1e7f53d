package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// interval is what a minute adds to the account of the CPU.
type interval struct {
	idle, emitted, metered int64
	pending                int64 // samples more that wait than before
	filtered               map[FilterReason]int64
	dropped                map[DropReason]int64
}

func (i interval) add(s *StreamSnapshot) {
	s.Filtered[FilterIdle] += i.idle
	s.Emitted, s.Metered = s.Emitted+i.emitted, s.Metered+i.metered
	s.Hits += i.idle + i.emitted + i.pending
	for r, n := range i.filtered {
		s.Filtered[r] += n
		s.Hits += n
	}
	for r, n := range i.dropped {
		s.Dropped[r] += n
		s.Hits += n
	}
}

func newTestNotices(change func(*Options)) (*notices, *observer.ObservedLogs) {
	core, said := observer.New(zap.InfoLevel)
	o := Options{Logger: zap.New(core), NoticeInterval: time.Minute, ReportInterval: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	return newNotices(&o, newSelectorMatches(&o.Targets.Selection)), said
}

const (
	lineSilent  = "Nothing was emitted for a minute, though the CPUs were busy."
	lineEmitted = "Samples are emitted again."
)

// lookAt has the notices look at the end of each minute, when rules and selectors were named already.
func (n *notices) lookAt(minutes []interval) {
	n.intervals = noticeMatches
	var s Snapshot
	for _, minute := range minutes {
		minute.add(&s.Streams[profile.KindCPU])
		n.look(&s)
	}
}

// messages are the lines of the log.
func messages(said *observer.ObservedLogs) (lines []string) {
	for _, e := range said.All() {
		lines = append(lines, e.Message)
	}
	return lines
}

// That nothing is emitted is said when it begins, again after a while, and when it has ended;
// and with it, what became of most samples.
func TestNoticeSilence(t *testing.T) {
	const silence, again = lineSilent, lineEmitted
	filtered := func(n int64) interval { return interval{filtered: map[FilterReason]int64{FilterTarget: n}} }
	for name, tc := range map[string]struct {
		minutes []interval
		want    []string
		why     string
	}{
		"busy":             {[]interval{{emitted: 1, filtered: map[FilterReason]int64{FilterTarget: 1000}}}, nil, ""},
		"only in metrics":  {[]interval{{metered: 100, dropped: map[DropReason]int64{DropPendingFull: 100}}}, []string{silence}, "the next consumer takes longer than samples can wait, and they were dropped: pending_full"},
		"idle":             {[]interval{{idle: 2400}}, nil, ""},
		"hardly busy":      {[]interval{{idle: 240_000, filtered: map[FilterReason]int64{FilterTarget: 2000}}}, nil, ""},
		"a few samples":    {[]interval{filtered(noticeBusy - 1)}, nil, ""},
		"filtered":         {[]interval{filtered(noticeBusy)}, []string{silence}, "targets select no process that ran"},
		"refused":          {[]interval{{filtered: map[FilterReason]int64{FilterTarget: 100}, dropped: map[DropReason]int64{DropRefused: 101}}}, []string{silence}, "the next consumer refused all profiles; the log of the exporters says why"},
		"most filtered":    {[]interval{{idle: 5000, filtered: map[FilterReason]int64{FilterTarget: 101}, dropped: map[DropReason]int64{DropRefused: 1}}}, []string{silence}, "the next consumer refused all profiles; the log of the exporters says why"},
		"largest reason":   {[]interval{{idle: 5000, filtered: map[FilterReason]int64{FilterTarget: 101, FilterUnknownProcess: 100}}}, []string{silence}, "targets select no process that ran"},
		"too late":         {[]interval{{dropped: map[DropReason]int64{DropPendingFull: 100}}}, []string{silence}, "the next consumer takes longer than samples can wait, and they were dropped: pending_full"},
		"no memory":        {[]interval{{dropped: map[DropReason]int64{DropNoMemory: 100}}}, []string{silence}, "max_memory_bytes is reached, and samples were dropped: the metric memory_used says by part what holds it"},
		"dropped":          {[]interval{{dropped: map[DropReason]int64{DropRingFull: 100}}}, []string{silence}, "samples were dropped: ring_full"},
		"unknown":          {[]interval{{filtered: map[FilterReason]int64{FilterUnknownProcess: 100}}}, []string{silence}, "of the processes that ran it was not known in time whether targets select them: they ended too soon, or cannot be looked at"},
		"only before":      {[]interval{filtered(500), {emitted: 10}, {idle: 2000}}, []string{silence, again}, ""},
		"said again":       {[]interval{filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500)}, []string{silence, silence}, ""},
		"begins once more": {[]interval{filtered(500), filtered(500), {emitted: 1}, filtered(500)}, []string{silence, again, silence}, ""},
		"idle in between":  {[]interval{filtered(500), {idle: 2400}, filtered(500), {emitted: 1}}, []string{silence, again}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, said := newTestNotices(func(o *Options) { o.Targets.Selection.Include = []targets.Selector{{PID: 1}} })
			n.lookAt(tc.minutes)
			require.Equal(t, tc.want, messages(said))
			if tc.why != "" {
				require.Equal(t, tc.why, said.All()[0].ContextMap()["why"])
			}
		})
	}
	t.Run("labelled only", func(t *testing.T) {
		for _, include := range [][]targets.Selector{nil, {{PID: 1}}} {
			n, said := newTestNotices(func(o *Options) { o.Targets.LabelledOnly, o.Targets.Selection.Include = true, include })
			var s Snapshot
			filtered(500).add(&s.Streams[profile.KindCPU])
			n.look(&s)
			require.Contains(t, said.All()[0].ContextMap()["why"], "labelprof inspect PID says why one has none")
		}
	})
}

// Samples that only wait for their report are no silence, however long it takes; those that never come are.
func TestNoticeReports(t *testing.T) {
	var report, refused []interval
	for range 3 {
		report = append(report, interval{pending: 500}, interval{pending: 500}, interval{pending: 500}, interval{pending: 500},
			interval{pending: -1500, emitted: 2000})
	}
	waits := make([]interval, 15)
	for i := range waits {
		waits[i] = interval{pending: 500}
	}
	refused = append(append(refused, waits[:4]...),
		interval{pending: -1500, dropped: map[DropReason]int64{DropRefused: 2000}}, interval{pending: 500})
	filtered := interval{filtered: map[FilterReason]int64{FilterTarget: 500}}
	for name, tc := range map[string]struct {
		minutes []interval
		want    []string
		why     string
	}{
		"healthy":           {report, nil, ""},
		"never":             {waits[:5], []string{lineSilent}, "the samples are still on their way"},
		"never for long":    {waits, []string{lineSilent, lineSilent}, "the samples are still on their way"},
		"refused":           {refused, []string{lineSilent}, "the next consumer refused all profiles; the log of the exporters says why"},
		"nothing waits":     {[]interval{filtered}, []string{lineSilent}, "targets select no process that ran"},
		"idle first":        {append(make([]interval, 20), report...), nil, ""},
		"few of idle hosts": {append([]interval{{pending: 1}, {pending: 1}, {pending: 1}, {pending: 1}, {pending: 1}, {pending: 1}}, report...), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, said := newTestNotices(func(o *Options) {
				o.ReportInterval = 4*time.Minute + time.Second
				o.Targets.Selection.Include = []targets.Selector{{PID: 1}}
			})
			n.lookAt(tc.minutes)
			require.Equal(t, tc.want, messages(said))
			if tc.why != "" {
				require.Equal(t, tc.why, said.All()[0].ContextMap()["why"])
			}
		})
	}
	for report, want := range map[time.Duration]int{
		5 * time.Second: 0, 40 * time.Second: 0, time.Minute: 1, 90 * time.Second: 1, 119 * time.Second: 2, 5 * time.Minute: 5,
	} {
		require.Equal(t, want, reportIntervals(&Options{ReportInterval: report, NoticeInterval: time.Minute}), report)
	}
}

// Rules and selectors that have matched nothing are named once, after five minutes.
func TestNoticeMatches(t *testing.T) {
	uid := uint32(7)
	n, said := newTestNotices(func(o *Options) {
		o.Labels.Rules = []labels.Rule{{Key: "tenant", Action: labels.Drop}, {Key: "rout?", Action: labels.Hash}}
		o.Targets.Selection = targets.Selection{
			Include: []targets.Selector{{UID: &uid}, {Executable: "/bin/*", PID: 3}},
			Exclude: []targets.Selector{{ContainerID: "ab*"}},
		}
	})
	n.selectors.note(&targets.Process{UID: 7})
	n.selectors.note(&targets.Process{PID: 3, Executable: "/usr/bin/a"})
	s := Snapshot{}
	s.Labels.RuleMatches = []int64{1, 0}
	for range noticeMatches - 1 {
		n.look(&s)
	}
	require.Zero(t, said.Len())
	for range noticeMatches {
		n.look(&s)
	}
	var got []string
	for _, e := range said.All() {
		of := e.ContextMap()
		if selector, ok := of["selector"].(string); ok {
			got = append(got, e.Level.String()+" "+selector)
		} else {
			got = append(got, of["key"].(string)+" "+of["action"].(string))
		}
	}
	require.Equal(t, []string{"rout? hash", `info include[1]: executable: "/bin/*", pid: 3`, `warn exclude[0]: container_id: "ab*"`}, got)

	n.selectors.note(&targets.Process{PID: 3, Executable: "/bin/a"})
	n.selectors.note(&targets.Process{ContainerID: "abc"})
	include, exclude := n.selectors.unmatched()
	require.Empty(t, append(include, exclude...))
	require.Zero(t, n.selectors.left.Load())
}

// The line at the start says what is sampled, and how.
func TestNoticeStart(t *testing.T) {
	n, said := newTestNotices(nil)
	n.started(&Options{SamplesPerSecond: 20}, 4, true)
	require.Equal(t, map[string]any{
		"cpus": int64(4), "samples_per_second": int64(20), "labels": true, "stacks": "unwind rows", "context_events": true, "targets": "all processes",
	}, said.All()[0].ContextMap())
	o := Options{SamplesPerSecond: 97, Targets: TargetOptions{LabelledOnly: true, Selection: targets.Selection{Exclude: make([]targets.Selector, 2)}}}
	o.Labels.Skip, o.Unwind.FramePointersOnly, o.OffCPU.Threshold = true, true, 0.25
	n.started(&o, 4, false)
	require.Equal(t, map[string]any{
		"cpus": int64(4), "samples_per_second": int64(97), "labels": false, "stacks": "frame pointers", "context_events": false,
		"targets": "excluded by 2, labelled only", "off_cpu_threshold": 0.25,
	}, said.All()[1].ContextMap())
}
