package cputime

import (
	"maps"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Sums of time by process and label. Make them with New.
type Sums struct {
	opts   Options
	period uint64         // ns
	keys   map[string]int // to Options.LabelKeys

	mu        sync.Mutex
	resources map[string]*resource // by identity
	owners    map[owner]*resource
	accounts  map[uint32]*account
	others    account // of users without one of their own
	series    int
	bytes     int
	// floor is when series were let go last: none that begins may have begun before.
	floor                  uint64 // Unix ns
	last                   uint64 // time of the last collection
	collections, delivered uint64
	parts                  map[int]bool // requests of the last collection that were accepted though others were not
	numbers                uint64       // of resources
	sought                 uint64       // before which collection no place was found for an account; 0: never

	// Of one Add.
	found   map[entry]*found
	owned   map[uint64]*resource // by process
	fresh   map[string]*resource // by identity; not in resources when it was met
	values  []string             // by label key
	scratch []byte
}

// entry is what all totals of one series in a batch have in common.
type entry struct {
	process uint64
	set     *labels.Set
	state   record.ThreadState
}

// found is the series of an entry.
type found struct {
	*series
	lost lost
}

type lost uint8

const (
	lostNothing lost = iota
	lostLabels
	lostOwner
)

// New returns empty Sums.
func New(opts Options) *Sums {
	s := &Sums{
		opts: opts, period: uint64(opts.Period),
		keys:      make(map[string]int, len(opts.LabelKeys)),
		resources: map[string]*resource{},
		owners:    map[owner]*resource{},
		accounts:  map[uint32]*account{},
		others:    *newAccount(),
		found:     map[entry]*found{},
		owned:     map[uint64]*resource{},
		fresh:     map[string]*resource{},
		parts:     map[int]bool{},
		values:    make([]string, len(opts.LabelKeys)),
	}
	for i, k := range opts.LabelKeys {
		s.keys[k] = i
	}
	return s
}

// Series returns how many there are.
func (s *Sums) Series() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.series
}

// Add adds what a Builder has of one user. It leaves the Builder as it is.
func (s *Sums) Add(b *profile.Builder, batch Batch, r Resolver) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.found)
	clear(s.owned)
	clear(s.fresh)
	before := s.bytes
	var result Result
	for t := range b.Totals() {
		if !r.Wanted(t.Process, t.Samples) {
			continue
		}
		e := entry{t.Process, t.Set, t.State}
		to := s.found[e]
		if to == nil {
			to = s.find(&t, &batch, r)
			s.found[e] = to
		}
		if batch.Kind == profile.KindCPU {
			to.add(uint64(t.Samples) * s.period)
		} else {
			to.add(uint64(max(t.OffCPUNs, 0)))
		}
		to.last = max(to.last, batch.EndUnixNano)
		result.Counted += t.Samples
		switch to.lost {
		case lostLabels:
			result.LostLabels += t.Samples
		case lostOwner:
			result.LostOwner += t.Samples
		}
	}
	clear(s.found) // lets go of the label sets
	clear(s.values)
	result.Bytes = s.bytes - before
	return result
}

// find returns the series that a total counts in, a new one if need be and room is there.
func (s *Sums) find(t *profile.Total, batch *Batch, r Resolver) *found {
	k := s.keyOf(batch.Kind, t)
	of := s.resource(t.Process, batch, r)
	if se := of.series[k]; se != nil {
		return s.own(se, t.Process, batch.User, lostNothing)
	}
	if !batch.Tight && s.hasRoom(of.account, batch.EndUnixNano) {
		return s.own(s.newSeries(of, k, batch.StartUnixNano), t.Process, batch.User, lostNothing)
	}
	how := lostNothing
	if k.encoding != "" {
		how = lostLabels
		k = seriesKey{kind: k.kind, state: k.state, marks: overflow}
		if se := of.series[k]; se != nil {
			return s.own(se, t.Process, batch.User, how)
		}
	}
	if !batch.Tight && of.account.hasRoom(&s.opts, 2) {
		return s.own(s.newSeries(of, k, batch.StartUnixNano), t.Process, batch.User, how)
	}
	// What is left is one series for each kind. If the process had another resource, it has that no more.
	s.disown(owner{t.Process, batch.User}, of)
	of = s.userResource(batch)
	k = seriesKey{kind: k.kind, marks: overflow}
	se := of.series[k]
	if se == nil {
		se = s.newSeries(of, k, batch.StartUnixNano)
	}
	return &found{se, lostOwner}
}

// own notes that a process has the resource of a series, and no other any more.
func (s *Sums) own(se *series, process uint64, user uint32, how lost) *found {
	by := owner{process, user}
	s.disown(by, se.of)
	if s.owners[by] == nil {
		s.owners[by] = se.of
		se.of.owners++
		se.of.left = false
		s.bytes += processBytes
	}
	return &found{se, how}
}

// disown notes that a process has no resource but one any more.
func (s *Sums) disown(by owner, but *resource) {
	if of := s.owners[by]; of != nil && of != but {
		of.owners--
		of.left = of.owners == 0
		s.bytes -= processBytes
		delete(s.owners, by)
	}
}

// resource returns that of a process for the samples of a batch's user; it may not be one of s yet.
func (s *Sums) resource(process uint64, batch *Batch, r Resolver) *resource {
	if of := s.owned[process]; of != nil {
		return of
	}
	attrs := pcommon.NewMap()
	r.Resource(process, attrs)
	attrs.PutInt(AttrUser, int64(batch.User))
	of := s.resourceOf(attrs, s.account(batch))
	s.owned[process] = of
	return of
}

// userResource returns that of a batch's user.
func (s *Sums) userResource(batch *Batch) *resource {
	attrs := pcommon.NewMap()
	acct := s.account(batch)
	if acct != &s.others {
		attrs.PutInt(AttrUser, int64(batch.User))
	}
	return s.resourceOf(attrs, acct)
}

func (s *Sums) resourceOf(attrs pcommon.Map, acct *account) *resource {
	identity := appendMap(nil, attrs)
	if of := s.resources[string(identity)]; of != nil {
		return of
	}
	if of := s.fresh[string(identity)]; of != nil {
		return of
	}
	of := &resource{identity: string(identity), attrs: attrs, account: acct, series: map[seriesKey]*series{}}
	s.fresh[of.identity] = of
	return of
}

// Delivered notes that what the last Collect returned was accepted.
func (s *Sums) Delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delivered = s.collections
}

// DeliveredPart notes that one request of what the last Collect returned was accepted, where others were not.
func (s *Sums) DeliveredPart(request int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[request] = true
}

// expire lets go of what has ended: of processes that are not alive, and then of resources
// that no process has, but of one that a process has left for another at once: a backend that keeps the attributes of
// both but in part has two sums in one series. Resources that have no series any more go as well, whatever process has
// them. It returns whether any series went.
func (s *Sums) expire(now uint64, alive func(process uint64) bool) bool {
	maps.DeleteFunc(s.owners, func(by owner, of *resource) bool {
		if len(of.series) > 0 && alive(by.process) {
			return false
		}
		of.owners--
		s.bytes -= processBytes
		return true
	})
	went := false
	for _, of := range s.resources {
		last := of.lastAt(now)
		if of.owners == 0 && of.accepted() && (of.left || now-last >= uint64(s.opts.Expiry)) {
			s.forget(of)
			went = true
		}
	}
	maps.DeleteFunc(s.accounts, func(_ uint32, a *account) bool { return a.series == 0 })
	return went
}
