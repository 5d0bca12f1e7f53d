package pipeline

import (
	"testing"

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
	filtered               map[FilterReason]int64
	dropped                map[DropReason]int64
}

func (i interval) add(s *StreamSnapshot) {
	s.Filtered[FilterIdle] += i.idle
	s.Emitted, s.Metered = s.Emitted+i.emitted, s.Metered+i.metered
	s.Hits += i.idle + i.emitted
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
	o := Options{Logger: zap.New(core)}
	if change != nil {
		change(&o)
	}
	return newNotices(&o, newSelectorMatches(&o.Targets.Selection)), said
}

// That nothing is emitted is said when it begins, again after a while, and when it has ended;
// and with it, what became of most samples.
func TestNoticeSilence(t *testing.T) {
	const silence, again = "Nothing was emitted for a minute, though the CPUs were busy.", "Samples are emitted again."
	filtered := func(n int64) interval { return interval{filtered: map[FilterReason]int64{FilterTarget: n}} }
	for name, tc := range map[string]struct {
		minutes []interval
		want    []string
		why     string
	}{
		"busy":             {[]interval{{emitted: 1, filtered: map[FilterReason]int64{FilterTarget: 1000}}}, nil, ""},
		"metrics alone":    {[]interval{{metered: 1, filtered: map[FilterReason]int64{FilterTarget: 1000}}}, nil, ""},
		"idle":             {[]interval{{idle: 2400}}, nil, ""},
		"hardly busy":      {[]interval{{idle: 240_000, filtered: map[FilterReason]int64{FilterTarget: 2000}}}, nil, ""},
		"a few samples":    {[]interval{filtered(noticeBusy - 1)}, nil, ""},
		"filtered":         {[]interval{filtered(noticeBusy)}, []string{silence}, "targets select no process that ran"},
		"refused":          {[]interval{{filtered: map[FilterReason]int64{FilterTarget: 100}, dropped: map[DropReason]int64{DropRefused: 101}}}, []string{silence}, "the next consumer refused all profiles; the log of the exporters says why"},
		"most filtered":    {[]interval{{idle: 5000, filtered: map[FilterReason]int64{FilterTarget: 101}, dropped: map[DropReason]int64{DropRefused: 1}}}, []string{silence}, "the next consumer refused all profiles; the log of the exporters says why"},
		"largest reason":   {[]interval{{idle: 5000, filtered: map[FilterReason]int64{FilterTarget: 101, FilterUnknownProcess: 100}}}, []string{silence}, "targets select no process that ran"},
		"too late":         {[]interval{{dropped: map[DropReason]int64{DropPendingFull: 100}}}, []string{silence}, "the next consumer takes longer than samples can wait, and they were dropped: pending_full"},
		"dropped":          {[]interval{{dropped: map[DropReason]int64{DropRingFull: 100}}}, []string{silence}, "samples were dropped: ring_full"},
		"unknown":          {[]interval{{filtered: map[FilterReason]int64{FilterUnknownProcess: 100}}}, []string{silence}, "of the processes that ran it was not known in time whether targets select them: they ended too soon, or cannot be looked at"},
		"only before":      {[]interval{filtered(500), {emitted: 10}, {idle: 2000}}, []string{silence, again}, ""},
		"said again":       {[]interval{filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500), filtered(500)}, []string{silence, silence}, ""},
		"begins once more": {[]interval{filtered(500), filtered(500), {emitted: 1}, filtered(500)}, []string{silence, again, silence}, ""},
		"idle in between":  {[]interval{filtered(500), {idle: 2400}, filtered(500), {emitted: 1}}, []string{silence, again}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, said := newTestNotices(func(o *Options) { o.Targets.Selection.Include = []targets.Selector{{PID: 1}} })
			n.intervals = noticeMatches // those were named
			var s Snapshot
			for _, minute := range tc.minutes {
				minute.add(&s.Streams[profile.KindCPU])
				n.look(&s)
			}
			var got []string
			for _, e := range said.All() {
				got = append(got, e.Message)
			}
			require.Equal(t, tc.want, got)
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
			got = append(got, selector)
		} else {
			got = append(got, of["key"].(string)+" "+of["action"].(string))
		}
	}
	require.Equal(t, []string{"rout? hash", `include[1]: executable: "/bin/*", pid: 3`, `exclude[0]: container_id: "ab*"`}, got)

	n.selectors.note(&targets.Process{PID: 3, Executable: "/bin/a"})
	n.selectors.note(&targets.Process{ContainerID: "abc"})
	require.Empty(t, n.selectors.unmatched())
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
