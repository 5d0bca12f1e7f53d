package cputime

import (
	"encoding/binary"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Estimated memory, map buckets included.
const (
	seriesBytes   = 256
	resourceBytes = 512
	identityShare = 4 // times the identity of a resource is what its attributes take with it
	processBytes  = 64
)

// account is what a user has of series.
type account struct {
	series, bytes int
	resources     map[*resource]struct{}
	swept         uint64 // before which collection room was last made; 0: never
}

func newAccount() *account { return &account{resources: map[*resource]struct{}{}} }

func (a *account) hasRoom(o *Options, times int) bool {
	return a.series < times*o.MaxSeries && a.bytes < times*o.MaxBytes
}

// owner is a process as its samples of one user have it.
type owner struct {
	process uint64
	user    uint32
}

// resource is what series have in common, told apart by its attributes.
type resource struct {
	identity string
	attrs    pcommon.Map
	account  *account
	number   uint64 // the order in which resources have come
	owners   int    // processes that have it now
	left     bool   // the last process that had it has another one now
	series   map[seriesKey]*series
}

// accepted reports whether all that was summed up was accepted.
func (r *resource) accepted() bool {
	for _, se := range r.series {
		if se.accepted != se.ns {
			return false
		}
	}
	return true
}

// lastAt returns the end of the last batch, no later than a time: the clock may have been ahead.
func (r *resource) lastAt(now uint64) (last uint64) {
	for _, se := range r.series {
		se.last = min(se.last, now)
		last = max(last, se.last)
	}
	return last
}

// seriesKey is what tells the series of a resource apart.
type seriesKey struct {
	kind     profile.Kind
	state    record.ThreadState
	marks    marks
	encoding string // of the values
}

type marks uint8

const (
	truncated marks = 1 << iota
	overflow
)

// series is one sum.
type series struct {
	seriesKey
	of       *resource
	values   []string // by label key; "": none
	ns       uint64
	start    uint64 // Unix ns
	told     uint64 // of ns, in the last collection
	request  int    // of the last collection, that it was told in
	accepted uint64 // in the last request that was accepted
	last     uint64 // end of the last batch with a sample, Unix ns
	bytes    int
}

func (s *series) add(ns uint64) {
	if ns > math.MaxUint64-s.ns {
		ns = math.MaxUint64 - s.ns
	}
	s.ns += ns
}

// keyOf returns the key of the series of a total, and leaves its values in s.values.
func (s *Sums) keyOf(kind profile.Kind, t *profile.Total) seriesKey {
	k := seriesKey{kind: kind, state: t.State}
	clear(s.values)
	if t.Set == nil || len(s.values) == 0 {
		return k // without label keys there is nothing to cut or lose
	}
	if t.Set.Truncated() {
		k.marks |= truncated
	}
	if t.Set.Overflow() {
		k.marks |= overflow
	}
	labelled := false
	for l := range t.Set.All() {
		if i, ok := s.keys[l.Key]; ok && l.Value != "" {
			s.values[i] = labels.Escape(l.Value)
			labelled = true
		}
	}
	if labelled {
		s.scratch = s.scratch[:0]
		for _, v := range s.values {
			s.scratch = binary.AppendUvarint(s.scratch, uint64(len(v)))
			s.scratch = append(s.scratch, v...)
		}
		k.encoding = string(s.scratch)
	}
	return k
}

// newSeries begins a series of the values in s.values.
func (s *Sums) newSeries(of *resource, k seriesKey, start uint64) *series {
	if _, fresh := s.resources[of.identity]; !fresh {
		s.numbers++
		of.number = s.numbers
		s.resources[of.identity] = of
		of.account.bytes += of.bytes()
		of.account.resources[of] = struct{}{}
		s.bytes += of.bytes()
	}
	se := &series{seriesKey: k, of: of, start: max(start, s.floor), bytes: seriesBytes + 2*len(k.encoding)}
	if k.encoding != "" {
		se.values = make([]string, len(s.values))
		for i, v := range s.values {
			se.values[i] = strings.Clone(v) // a label set's memory is that of many
		}
	}
	of.series[k] = se
	of.account.series++
	of.account.bytes += se.bytes
	s.series++
	s.bytes += se.bytes
	return se
}

func (r *resource) bytes() int { return resourceBytes + identityShare*len(r.identity) }

// forget lets a resource go with all its series.
func (s *Sums) forget(r *resource) {
	for _, se := range r.series {
		s.forgetSeries(se)
	}
	r.account.bytes -= r.bytes()
	s.bytes -= r.bytes()
	delete(r.account.resources, r)
	delete(s.resources, r.identity)
}

func (s *Sums) forgetSeries(se *series) {
	delete(se.of.series, se.seriesKey)
	se.of.account.series--
	se.of.account.bytes -= se.bytes
	s.series--
	s.bytes -= se.bytes
}

// hasRoom reports whether an account has room for a series, which it makes where it can. It looks for room
// once between two collections: an account that stays full does not pay for it with each sample.
func (s *Sums) hasRoom(a *account, now uint64) bool {
	if next := s.collections + 1; !a.hasRoom(&s.opts, 1) && a.swept != next {
		a.swept = next
		s.forgetQuiet(a, now)
	}
	return a.hasRoom(&s.opts, 1)
}

// forgetQuiet lets go of the series of an account that have had no sample for Options.Expiry at a time and are accepted,
// whatever has become of their processes. None that the batch which ends at that time has counted in is among them.
// Their resources stay, until the next collection: samples of the batch may be theirs.
func (s *Sums) forgetQuiet(a *account, now uint64) {
	for of := range a.resources {
		for _, se := range of.series {
			if s.acceptedOf(se) == se.ns && now > se.last && now-se.last >= uint64(s.opts.Expiry) {
				s.forgetSeries(se)
				s.floor = s.last
			}
		}
	}
}
