// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/writercheck"
)

const (
	// maxSelection bounds the time in which a process that publishes is looked for among those
	// of a command before the time counts that they are watched, and lookEvery is how often;
	// lookLater is how often from then on.
	maxSelection = 2 * time.Second
	lookEvery    = 100 * time.Millisecond
	lookLater    = time.Second
	// maxOthers bounds the processes that are looked at besides, maxWatched those that are watched,
	// and maxListed those of the host.
	maxOthers  = 32
	maxWatched = 16
	maxListed  = 1 << 17
)

// group watches those processes of a command that publish.
type group struct {
	root      int
	watched   map[int]bool
	results   chan result
	unwatched []int
	crowded   bool // there are more processes than are looked at
}

// result is what became of watching a process.
type result struct {
	pid    int
	report *writercheck.Report
	err    error
}

// watch watches the processes of a command that publish, each from when it is found, for a time that begins
// when the first one has published something; or the command itself, if none has soon.
func (p *program) watch(ctx context.Context, duration time.Duration) (*judgement, error) {
	g := &group{root: p.cmd.Process.Pid, watched: map[int]bool{}, results: make(chan result, maxWatched)}
	selected := time.Now().Add(min(duration, maxSelection))
	var end time.Time // zero until something is watched
	for over := false; !over; {
		late := time.Now().After(selected)
		found := g.publishers(ctx, late)
		if late && end.IsZero() && len(found) == 0 {
			found = []int{g.root}
		}
		if len(found) > 0 && end.IsZero() {
			end = time.Now().Add(duration)
		}
		for _, pid := range found {
			g.begin(ctx, pid, time.Until(end))
		}
		pause := lookEvery
		if late {
			pause = min(lookLater, time.Until(end))
		}
		select {
		case <-p.done:
			over = true
		case <-ctx.Done():
			over = true
		case <-time.After(pause):
			over = !end.IsZero() && time.Now().After(end)
		}
	}
	if len(g.watched) == 0 {
		g.begin(ctx, g.root, duration) // says why not
	}
	g.unwatched = g.publishers(ctx, false)
	return g.end(time.Until(end))
}

// begin begins to watch a process.
func (g *group) begin(ctx context.Context, pid int, duration time.Duration) {
	if len(g.watched) == maxWatched {
		return // it is found again at the end
	}
	g.watched[pid] = true
	go func() {
		report, err := writercheck.Watch(ctx, pid, duration)
		g.results <- result{pid, report, err}
	}()
}

// end waits for what is watched, of which one process may hang, and judges what was seen.
func (g *group) end(left time.Duration) (*judgement, error) {
	var reports []*writercheck.Report
	var first error
	timer := time.NewTimer(max(left, 0) + grace*2/3)
	defer timer.Stop()
	for len(g.watched) > 0 {
		select {
		case r := <-g.results:
			delete(g.watched, r.pid)
			switch {
			case r.err == nil:
				reports = append(reports, r.report)
			case first == nil || !errors.Is(r.err, procfs.ErrNoProcess):
				first = r.err
			}
			if r.err != nil && !errors.Is(r.err, procfs.ErrNoProcess) {
				g.unwatched = append(g.unwatched, r.pid)
			}
		case <-timer.C:
			for pid := range g.watched {
				g.unwatched = append(g.unwatched, pid)
			}
			clear(g.watched)
			first = errHangs
		}
	}
	if len(reports) == 0 {
		return nil, first
	}
	slices.Sort(g.unwatched)
	return judge(reports, g.unwatched, g.crowded), nil
}

// publishers are processes that publish and are not watched. A Go program may have labels at any
// time, or never.
func (g *group) publishers(ctx context.Context, goToo bool) (found []int) {
	besides, crowded := others(g.root)
	g.crowded = crowded
	for _, pid := range append([]int{g.root}, besides...) {
		if ctx.Err() != nil {
			return nil
		}
		if g.watched[pid] {
			continue
		}
		if info, err := process.Inspect(ctx, procfs.FS{}, pid); err == nil && publishes(info, goToo) {
			found = append(found, pid)
		}
	}
	return found
}

func publishes(info *process.Info, goToo bool) bool {
	return slices.ContainsFunc(writercheck.FormatsOf(info), func(f writercheck.Format) bool { return goToo || f != writercheck.Go })
}

// others returns the processes of a process group but its leader, or some of them if it is crowded.
func others(leader int) (found []int, crowded bool) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxListed)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == leader {
			continue
		}
		if group, err := syscall.Getpgid(pid); err != nil || group != leader {
			continue
		}
		if len(found) == maxOthers {
			return found, true
		}
		found = append(found, pid)
	}
	return found, false
}
