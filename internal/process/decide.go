//go:build linux

package process

import (
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// publication is what the sampling programs were told of a process.
type publication uint8

const (
	unpublished      publication = iota
	publishedSources             // its label sources, which may be none
	publishedFilter              // its samples are not wanted
)

// situation is what is known of a process beside what a look has read.
type situation struct {
	selection   *Selection
	publication publication
	sources     []record.LabelSource // as published last
	inherited   int                  // label sources that it has begun with
	young       bool                 // it may still be mapping what it starts with
	shown       Verdict              // of the information that is shown
	memoryShort bool                 // little memory is left for what is new of its user's processes
}

// decision is what comes of a look.
type decision struct {
	// tell is what the sampling programs have to be told: unpublished for nothing new.
	tell publication
	// settled: these are the label sources of the process, as long as it maps nothing else.
	settled bool
	// show the information, which is news.
	show bool
	// retry: look again soon, as there may be more to find.
	retry bool
}

// decide completes what a look has read by what follows from it: verdict and extent. It reads
// nothing and tells nobody.
func decide(l *look, at *situation) decision {
	switch {
	case l.kernel:
		return decideKernel(l, at)
	case !l.wanted:
		return decideUnwanted(l, at)
	}
	before := l.read.info
	if before == nil || l.full {
		before = &Info{}
	}
	d := decision{retry: l.loading || l.updating}
	again := d.retry && l.read.attempt < len(retryDelays)
	l.info.Verdict = at.selection.judge(&l.info, again, at.shown)
	d.tell = at.news(l.info.Verdict, l.sources, again)
	d.settled = l.info.Verdict != VerdictFiltered && !again
	d.show = l.full || l.changed || l.newContext || !slices.Equal(before.Sources, l.info.Sources) ||
		before.Verdict != l.info.Verdict || !sameOwner(before, &l.info) || len(before.past) != len(l.info.past)
	if l.refused != nil { // which says nothing of sources
		d.settled = false
		if d.tell == publishedSources {
			d.tell = unpublished
		}
	}
	l.reduce(at.memoryShort)
	return d
}

// decideKernel is about a thread of the kernel, which has no labels.
func decideKernel(l *look, at *situation) decision {
	l.read.extent = extentWhole
	if at.selection == nil {
		return decision{show: true}
	}
	l.info.Verdict = VerdictFiltered
	if l.wanted {
		l.info.Verdict = at.selection.judge(&l.info, false, VerdictUnknown)
	}
	return decision{show: true, tell: at.news(l.info.Verdict, nil, false)}
}

// decideUnwanted is about a process that is not wanted, whatever labels it may have.
func decideUnwanted(l *look, at *situation) decision {
	l.info.Loaded, l.info.Verdict = true, VerdictFiltered
	l.info.Mappings, l.info.past, l.info.Sources = nil, nil, nil
	l.read.context = contextState{seen: l.read.context.seen}
	l.info.setContext(&l.read.context)
	news := l.read.info == nil || l.read.extent != extentOwner || !sameOwner(l.read.info, &l.info)
	l.read.extent = extentOwner
	return decision{show: news, tell: at.news(VerdictFiltered, nil, false)}
}

// news is what the sampling programs have to be told of a process. While there will be another
// look, soon, a forked child keeps what it has inherited: sources are missing until they have
// been seen twice, but its threads publish all the time. So does a process that began with
// those of its program.
func (at *situation) news(v Verdict, sources []record.LabelSource, again bool) publication {
	switch {
	case v == VerdictFiltered && at.publication == publishedFilter,
		v != VerdictFiltered && at.publication == publishedSources && slices.Equal(at.sources, sources):
		return unpublished
	case v == VerdictFiltered:
		return publishedFilter
	case at.publication == unpublished && (again || at.young) && len(sources) < at.inherited:
		return unpublished
	}
	return publishedSources
}

// sameOwner reports whether what a process may change of itself is unchanged.
func sameOwner(a, b *Info) bool {
	return a.UID == b.UID && a.Path == b.Path && a.Cgroup == b.Cgroup && a.CgroupID == b.CgroupID &&
		a.ContainerID == b.ContainerID && a.PodUID == b.PodUID
}

// reduce leaves out of what was read of a process what takes the most memory, when there
// is little left (short): first mappings that are gone; then mappings, and so unwind rows and names, and the resource that it has
// published. Who it is and where its labels are stays. It is looked at again as any
// process is, and has all again when there is room.
func (l *look) reduce(short bool) {
	info, before := &l.info, l.read.info
	if short {
		info.forgot = info.forgot || len(info.past) > 0
		info.past = nil
	}
	if !short || l.read.extent != extentReduced && info.bytes()-info.pastBytes() <= before.bytes()-before.pastBytes() {
		l.read.extent = extentWhole
		return
	}
	l.read.extent = extentReduced
	info.forgot = info.forgot || len(info.Mappings) > 0
	info.Mappings, info.CommandLine, info.Environment = nil, nil, nil
	if l.read.context.reduce() {
		info.setContext(&l.read.context)
	}
}
