// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// maxOTLPBytes bounds the file of received requests.
const maxOTLPBytes = 1 << 30

// sink takes batches, from files or from the network, and keeps what is shown and
// written. It is safe for concurrent use.
type sink struct {
	truthFiles []string

	mu        sync.Mutex
	table     *table
	pprof     *pprofProfile      // nil: not wanted
	store     *samplestore.Store // nil: not wanted
	otlp      io.Writer          // nil: not wanted
	otlpBytes int64
	unwritten int64 // batches that are not in otlp
	writeErr  error
	batches   int64
	malformed int64
	ignored   int64 // profiles of another type
}

// consume takes in a batch and owns it.
func (s *sink) consume(profiles pprofile.Profiles) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(func(visit func(*sample)) batch { return walk(profiles, visit) })
	s.keep(profiles)
}

// consumePprof takes in a file of pprof.
func (s *sink) consumePprof(p *profile.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(func(visit func(*sample)) batch { return walkPprof(p, visit) })
}

// take hands the samples of a batch to all that want them.
func (s *sink) take(walk func(visit func(*sample)) batch) {
	var found batch
	visit := func(entry *sample) {
		if s.table != nil {
			s.table.add(entry)
		}
		if s.pprof != nil {
			s.pprof.add(entry)
		}
	}
	if s.store == nil {
		found = walk(visit)
	} else {
		clean := newCleaner()
		s.store.Batch(func(add func(*samplestore.Sample)) {
			found = walk(func(entry *sample) {
				visit(entry)
				add(clean.stored(entry))
			})
		})
	}
	if s.pprof != nil {
		s.pprof.span(found.startNs, found.endNs)
	}
	s.batches++
	s.malformed += found.malformed
	s.ignored += found.otherProfiles
}

func (s *sink) keep(profiles pprofile.Profiles) {
	if s.otlp == nil {
		return
	}
	if s.otlpBytes > maxOTLPBytes || s.writeErr != nil {
		s.unwritten++
		return
	}
	n, err := appendFrame(s.otlp, profiles)
	s.otlpBytes += n
	if err != nil {
		s.writeErr = err
		s.unwritten++
	}
}

// show prints the tables as they are now.
func (s *sink) show(w io.Writer, flags viewFlags) {
	v := view{rows: flags.rows, functions: flags.functions}
	missing := 0 // their programs have not begun
	for _, path := range s.truthFiles {
		switch t, err := readTruth(path); {
		case errors.Is(err, fs.ErrNotExist):
			missing++
		case err != nil:
			v.notes = append(v.notes, err.Error())
		default:
			v.truths = append(v.truths, t)
		}
	}
	if missing > 0 {
		v.notes = append(v.notes, fmt.Sprintf("%d of %d truth files do not exist", missing, len(s.truthFiles)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.notes = append(v.notes, s.notes()...)
	render(w, s.table, v)
}

// notes are the counters of what was left out, as far as there is any.
func (s *sink) notes() []string {
	var notes []string
	note := func(count int64, format string) {
		if count > 0 {
			notes = append(notes, fmt.Sprintf(format, count))
		}
	}
	note(s.malformed, "%d malformed samples ignored")
	note(s.ignored, "%d profiles that are neither of CPU time nor off-CPU ignored")
	if s.table != nil {
		note(s.table.otherRowHits, "%d samples under "+others+": too many label values")
		note(s.table.otherFuncHits, "%d samples under "+otherFunction+": too many functions")
		note(s.table.unsharedNs, "%d ns not compared with the truth: too many processes and label values")
	}
	if s.pprof != nil {
		note(s.pprof.dropped, "%d samples not in the pprof file: no room")
		note(s.pprof.lost, "%d labels not in the pprof file: another one has the key")
	}
	note(s.unwritten, "%d batches not in the OTLP file")
	if s.writeErr != nil {
		notes = append(notes, s.writeErr.Error())
	}
	return notes
}

// finish writes the pprof file; batches taken in later are not in it.
func (s *sink) finish(pprofFile string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pprof == nil {
		return nil
	}
	if err := s.pprof.writeFile(pprofFile); err != nil {
		return fmt.Errorf("write %s: %w", pprofFile, err)
	}
	return nil
}

// createOTLP makes the file of received requests, which only its owner may read.
func createOTLP(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() { // no terminal, no pipe
		if err := file.Chmod(0o600); err != nil {
			file.Close()
			return nil, err
		}
	}
	return file, nil
}
