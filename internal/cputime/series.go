package cputime

import (
	"encoding/binary"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

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
			s.values[i] = t.Set.Text(&l)
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
		of.account.join(of)
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

func (r *resource) seriesBytes() (sum int) {
	for _, se := range r.series {
		sum += se.bytes
	}
	return sum
}

// forget lets a resource go with all its series.
func (s *Sums) forget(r *resource) {
	for _, se := range r.series {
		s.forgetSeries(se)
	}
	r.account.leave(r)
	s.bytes -= r.bytes()
	delete(s.resources, r.identity)
}

func (s *Sums) forgetSeries(se *series) {
	delete(se.of.series, se.seriesKey)
	se.of.account.series--
	se.of.account.bytes -= se.bytes
	s.series--
	s.bytes -= se.bytes
}
