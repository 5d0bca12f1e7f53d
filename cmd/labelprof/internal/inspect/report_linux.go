// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// processReport is all that is said of one process. The JSON names are stable.
type processReport struct {
	PID            int            `json:"pid"`
	Error          string         `json:"error,omitempty"` // then there is nothing else
	Name           string         `json:"name,omitempty"`
	Executable     string         `json:"executable,omitempty"`
	CLibrary       string         `json:"c_library,omitempty"` // "glibc", "musl", "static" or "unknown"
	LibraryVersion string         `json:"c_library_version,omitempty"`
	Context        *contextReport `json:"process_context,omitempty"` // if one was found
	Sources        []sourceReport `json:"label_sources"`
	Threads        []threadReport `json:"threads"`
	ThreadsLeftOut int            `json:"threads_left_out"`
	// Changed tells that the label sources were others at the end.
	Changed bool `json:"changed"`
	// Files, those that can have thread-local variables, and Hints are there
	// when no label source can be read.
	Files []fileReport `json:"files,omitempty"`
	Hints []string     `json:"hints,omitempty"`
	// Language is "go", "nodejs", "python", "java", or "" for all others.
	Language string `json:"language,omitempty"`
	// Advice is what to do next, a sentence or two each.
	Advice []string `json:"advice,omitempty"`

	err        error
	keys       *labels.KeyMap
	language   language
	destroyers []string // what in the process takes labels away
	outOfTime  bool     // not for all threads that were to be looked at
}

// sourceReport is a label source and what became of it.
type sourceReport struct {
	ABI      string          `json:"abi"`
	Symbol   string          `json:"symbol"`
	File     string          `json:"file"`
	Model    string          `json:"tls_model,omitempty"`
	Location *locationReport `json:"location,omitempty"`
	State    string          `json:"state"`
	Reason   string          `json:"reason,omitempty"` // why it is not active

	state  labelsource.State
	source record.LabelSource
}

// locationReport is where the variable is: from the thread pointer, or in the
// TLS block of a module.
type locationReport struct {
	Kind       string `json:"kind"` // "static", "glibc DTV", "musl DTV" or "register"
	Offset     int64  `json:"offset"`
	Module     uint64 `json:"module,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

// threadReport is what one thread publishes, by each active source.
type threadReport struct {
	TID      int             `json:"tid"`
	Name     string          `json:"name"`
	Error    string          `json:"error,omitempty"` // why it could not be read
	StoodNs  int64           `json:"stood_still_ns,omitempty"`
	Readings []readingReport `json:"readings,omitempty"`
}

// readingReport is what a thread has in one source.
type readingReport struct {
	Source    int         `json:"source"` // number of the label source, from 1
	Outcome   string      `json:"outcome"`
	Reason    string      `json:"reason,omitempty"`   // in words, unless labels are present
	Variable  string      `json:"variable,omitempty"` // address of the thread-local variable
	Labels    []labelText `json:"labels,omitempty"`
	TraceID   string      `json:"trace_id,omitempty"`
	SpanID    string      `json:"span_id,omitempty"`
	Flags     string      `json:"trace_flags,omitempty"`
	Truncated bool        `json:"truncated,omitempty"`
	Irregular []string    `json:"irregular,omitempty"` // what the format forbids or wastes
}

func newSourceReport(s *labelsource.Status) sourceReport {
	r := sourceReport{
		ABI: s.ABI.String(), Symbol: s.ABI.Symbol(), File: s.Path, Model: s.Model,
		State: s.State.String(), state: s.State, source: s.Source(),
	}
	if s.ABI == record.ABIGo {
		r.Symbol = "runtime.g.labels"
		r.Model = runtimeText(&s.Go)
	}
	if s.State != labelsource.Active {
		r.Reason = s.Err
	}
	if s.State == labelsource.Active || s.State == labelsource.Duplicate {
		at := s.Location
		r.Location = &locationReport{at.Kind.String(), at.Offset, at.Module, at.Generation}
	}
	return r
}

// runtimeText says of which Go a program is, and how its runtime's layout is known.
func runtimeText(p *golabels.Plan) string {
	switch {
	case p.Version == "":
		return "not known"
	case p.FromDWARF:
		return p.Version + ", layout from the debug information"
	case p.Layout != golabels.Layout{}:
		return p.Version + ", layout from the table of releases"
	}
	return p.Version
}

// active reports whether a source is read.
func (s *sourceReport) active() bool { return s.state == labelsource.Active }

// readable reports whether there is a source that can be read.
func (r *processReport) readable() bool {
	for i := range r.Sources {
		if r.Sources[i].active() {
			return true
		}
	}
	return false
}

func (r *processReport) fail(err error) processReport {
	return processReport{PID: r.PID, Error: fmt.Sprint(err), err: err}
}
