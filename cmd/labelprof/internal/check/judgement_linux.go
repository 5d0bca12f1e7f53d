// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/writercheck"
)

// judgement is what was seen of a process, or of a command.
type judgement struct {
	*writercheck.Report                       // of the process that decides
	others              []*writercheck.Report // of the other processes of a command that were watched
	unwatched           []int                 // PIDs of those that publish and were not
	crowded             bool                  // there are more than were looked at
}

// judge has the worst of a command's processes decide: one that breaks a rule, else one whose labels keep all, else
// one whose labels were not seen. What publishes no labels does not speak for those that do.
func judge(reports []*writercheck.Report, unwatched []int, crowded bool) *judgement {
	slices.SortFunc(reports, func(a, b *writercheck.Report) int {
		return cmp.Or(weight(b)-weight(a), a.PID-b.PID)
	})
	return &judgement{reports[0], reports[1:], unwatched, crowded}
}

func weight(r *writercheck.Report) int {
	verdict := r.Verdict()
	switch onlyGo := len(r.Formats) == 1 && r.Formats[0] == writercheck.Go; {
	case verdict == writercheck.Broken:
		return 4
	case verdict == writercheck.Holds && r.Reads.Published > 0:
		return 3
	case verdict == writercheck.NotSeen && len(r.Formats) > 0 && !onlyGo: // a Go program may have no labels at all
		return 2
	case verdict == writercheck.Holds:
		return 1
	}
	return 0
}

// Verdict is that of the whole: nothing holds while a process that publishes, or may, was not watched.
func (j *judgement) Verdict() writercheck.Verdict {
	if v := j.Report.Verdict(); v != writercheck.Holds || len(j.unwatched) == 0 && !j.crowded {
		return v
	}
	return writercheck.NotSeen
}

// Why says in words why there is nothing to judge by.
func (j *judgement) Why() string {
	if j.Report.Verdict() == writercheck.NotSeen {
		return j.Report.Why()
	}
	if len(j.unwatched) == 0 {
		return fmt.Sprintf("the command has more than the %d further processes that are looked at: run it with fewer", maxOthers)
	}
	return "other processes of the command publish and were not watched: judge each by itself, or look longer (--seconds)"
}

// besides says what became of the other processes of a command, a line each, escaped by no one.
func (j *judgement) besides() (lines []string) {
	for _, r := range j.others {
		lines = append(lines, fmt.Sprintf("also watched: process %d (%s): %s", r.PID, path.Base(r.Program), (&judgement{Report: r}).conclusion()))
	}
	for _, pid := range j.unwatched {
		lines = append(lines, fmt.Sprintf("not watched: process %d, which publishes, too", pid))
	}
	return lines
}
