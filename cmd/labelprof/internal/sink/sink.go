// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pagestore"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// maxOTLPBytes bounds the file of received requests, which ends with the one that passes it.
const maxOTLPBytes = 1 << 30

// tooLate is why samples were not taken in after GiveUp or End.
const tooLate = "it took too long when the command was to end"

// Config is what samples are kept for; nil: not wanted.
type Config struct {
	Table *table.Table
	Pprof *pprof.Builder
	Store *samplestore.Store
	// OTLP gets the batches as requests of a file of many. An io.Closer is closed by CloseOTLP.
	OTLP io.Writer
	// TruthFiles have the CPU time that programs measured themselves.
	TruthFiles []string
}

// Sink takes batches, from files or from the network, and keeps what is shown and
// written. It is safe for concurrent use; what it was made of is its own meanwhile.
type Sink struct {
	cfg    Config
	ending atomic.Bool

	mu        sync.Mutex
	otlpBytes int64
	unwritten int64 // batches that are not in the OTLP file
	writeErr  error
	batches   int64
	malformed int64
	cutTimes  int64 // times of one sample
	ignored   int64 // profiles of another type
	late      int64 // samples that came after GiveUp
	cuts      []error
}

// New returns a sink.
func New(cfg Config) *Sink { return &Sink{cfg: cfg} }

// Consume takes in a batch and owns it.
func (s *Sink) Consume(profiles pprofile.Profiles) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(func(visit func(*sample.Sample)) sample.Batch { return otlp.Walk(profiles, visit) })
	s.keep(profiles)
}

// ConsumePprof takes in a file of pprof.
func (s *Sink) ConsumePprof(p *profile.Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(func(visit func(*sample.Sample)) sample.Batch { return pprof.Walk(p, visit) })
}

// Cut implements input.Consumer.
func (s *Sink) Cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts = append(s.cuts, err)
}

// Cuts are the files that end within a request, whose samples are those before it.
func (s *Sink) Cuts() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.cuts)
}

// GiveUp makes a batch that is being taken in end soon: what is left of it, and what comes
// later, is counted and no more. It does not wait.
func (s *Sink) GiveUp() { s.ending.Store(true) }

// End is as GiveUp, but waits for what is being taken in.
func (s *Sink) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending.Store(true)
}

// take hands the samples of a batch to all that want them.
func (s *Sink) take(all sample.Walk) {
	walk := func(visit func(*sample.Sample)) sample.Batch {
		return all(func(entry *sample.Sample) {
			if s.ending.Load() {
				s.late = sample.AddNs(s.late, entry.Hits)
				return
			}
			visit(entry)
		})
	}
	visit := func(entry *sample.Sample) {
		if s.cfg.Table != nil {
			s.cfg.Table.Add(entry)
		}
		if s.cfg.Pprof != nil {
			s.cfg.Pprof.Add(entry)
		}
	}
	var found sample.Batch
	if s.cfg.Store == nil {
		found = walk(visit)
	} else {
		found = pagestore.Add(s.cfg.Store, func(add func(*sample.Sample)) sample.Batch {
			return walk(func(entry *sample.Sample) {
				visit(entry)
				add(entry)
			})
		})
	}
	if s.cfg.Pprof != nil {
		s.cfg.Pprof.Span(found.StartNs, found.EndNs)
	}
	s.batches++
	s.malformed += found.Malformed
	s.cutTimes += found.Cut
	s.ignored += found.OtherProfiles
}

func (s *Sink) keep(profiles pprofile.Profiles) {
	if s.cfg.OTLP == nil {
		return
	}
	if s.otlpBytes > maxOTLPBytes || s.writeErr != nil {
		s.unwritten++
		return
	}
	n, err := otlp.AppendFrame(s.cfg.OTLP, profiles)
	s.otlpBytes += n
	if err != nil {
		s.writeErr = err
		s.unwritten++
	}
}

// Batches returns how many have come.
func (s *Sink) Batches() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches
}

// WritePprof writes the pprof file, if one is wanted; batches taken in later are not in it.
func (s *Sink) WritePprof(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Pprof == nil {
		return nil
	}
	if err := s.cfg.Pprof.WriteFile(name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// PprofLacks says how many samples that have come are not in the pprof file, and why; nil: all are.
func (s *Sink) PprofLacks() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Pprof == nil {
		return nil
	}
	var err error
	if full := s.cfg.Pprof.Full(); full != "" {
		err = errors.New(full)
	}
	if s.late > 0 {
		err = errors.Join(err, fmt.Errorf("%d samples not in the pprof file: %s", s.late, tooLate))
	}
	return err
}

// CloseOTLP closes the OTLP file, and says why it is not whole; nil if it is. Where writes are delayed, as on NFS, a
// full disk may only be told of now. Batches taken in later are not in it.
func (s *Sink) CloseOTLP() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if file, ok := s.cfg.OTLP.(io.Closer); ok {
		return errors.Join(s.writeErr, file.Close())
	}
	return s.writeErr
}
