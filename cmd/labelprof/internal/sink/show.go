// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
)

// Show prints the tables as they are now. Truths and notes of the view are filled in.
func (s *Sink) Show(w io.Writer, v table.View) {
	s.shown(v, func(v table.View) { s.cfg.Table.Render(w, v) })
}

// ShowJSON prints the same as JSON. It fails with the errors of the writer.
func (s *Sink) ShowJSON(w io.Writer, v table.View) (err error) {
	s.shown(v, func(v table.View) { err = s.cfg.Table.RenderJSON(w, v) })
	return err
}

// shown calls render with the view filled in, while nothing comes in.
func (s *Sink) shown(v table.View, render func(table.View)) {
	missing := 0 // their programs have not begun
	for _, path := range s.cfg.TruthFiles {
		switch t, err := table.ReadTruth(path); {
		case errors.Is(err, fs.ErrNotExist):
			missing++
		case err != nil:
			v.Notes = append(v.Notes, err.Error())
		default:
			v.Truths = append(v.Truths, t)
		}
	}
	if missing > 0 {
		v.Notes = append(v.Notes, fmt.Sprintf("%d of %d truth files do not exist", missing, len(s.cfg.TruthFiles)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Notes = append(append(v.Notes, s.notes()...), s.cutNotes()...)
	render(v)
}

// Notes are the counters of what was left out, as far as there is any, a sentence each. Files that
// are cut are not among them: see Cuts.
func (s *Sink) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.notes()
}

func (s *Sink) notes() []string {
	notes := s.counted()
	if s.cfg.Table != nil {
		notes = append(notes, s.cfg.Table.Notes()...)
	}
	if s.cfg.Pprof != nil {
		notes = append(notes, s.cfg.Pprof.Notes()...)
	}
	if s.unwritten > 0 {
		notes = append(notes, s.unwrittenNote())
	}
	if s.writeErr != nil {
		notes = append(notes, s.writeErr.Error())
	}
	return notes
}

// OTLPNote says how many batches are not in the OTLP file; "": none.
func (s *Sink) OTLPNote() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwritten == 0 {
		return ""
	}
	return s.unwrittenNote()
}

func (s *Sink) unwrittenNote() string {
	note := fmt.Sprintf("%d batches not in the OTLP file", s.unwritten)
	if s.writeErr == nil {
		note += ": it is full, with 1 GiB"
	}
	return note
}

// StoreNotes are the counters of what never reached the store, and files that are cut.
func (s *Sink) StoreNotes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(s.counted(), s.cutNotes()...)
}

func (s *Sink) cutNotes() []string {
	var notes []string
	for _, err := range s.cuts {
		notes = append(notes, err.Error())
	}
	return notes
}

// counted are the counters of what is in none of them.
func (s *Sink) counted() []string {
	var notes []string
	if s.malformed > 0 {
		notes = append(notes, fmt.Sprintf("%d malformed samples ignored", s.malformed))
	}
	if s.cutTimes > 0 {
		notes = append(notes, fmt.Sprintf("%d times of more than 13 days cut to that: sums are too small", s.cutTimes))
	}
	if s.ignored > 0 {
		notes = append(notes, fmt.Sprintf("%d profiles that are neither of CPU time nor off-CPU ignored", s.ignored))
	}
	if s.late > 0 {
		notes = append(notes, fmt.Sprintf("%d samples not taken in: %s", s.late, tooLate))
	}
	return notes
}
