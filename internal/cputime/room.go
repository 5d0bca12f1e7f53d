package cputime

import (
	"cmp"
	"maps"
	"slices"
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

// account returns that of a batch's user. Where there are as many as there may be, it takes the place of one whose series
// are all quiet.
func (s *Sums) account(batch *Batch) *account {
	a := s.accounts[batch.User]
	if a != nil {
		return a
	}
	if len(s.accounts) >= s.opts.MaxUsers && !s.forgetQuietAccount(batch.EndUnixNano) {
		return &s.others
	}
	a = newAccount()
	s.accounts[batch.User] = a
	s.takeOver(a, batch.User)
	return a
}

// takeOver makes the resources that a user has among those of the others the ones of an account.
func (s *Sums) takeOver(a *account, user uint32) {
	for of := range s.others.resources {
		if v, ok := of.attrs.Get(AttrUser); !ok || v.Int() != int64(user) {
			continue
		}
		s.others.leave(of)
		a.join(of)
	}
}

// join makes a resource with its series one of an account.
func (a *account) join(of *resource) {
	of.account = a
	a.resources[of] = struct{}{}
	a.series += len(of.series)
	a.bytes += of.bytes() + of.seriesBytes()
}

func (a *account) leave(of *resource) {
	delete(a.resources, of)
	a.series -= len(of.series)
	a.bytes -= of.bytes() + of.seriesBytes()
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

// quiet reports whether a series has had no sample for Options.Expiry at a time, and is accepted.
func (s *Sums) quiet(se *series, now uint64) bool {
	return s.acceptedOf(se) == se.ns && now > se.last && now-se.last >= uint64(s.opts.Expiry)
}

// forgetQuiet lets go of the series of an account that are quiet at a time, whatever has become of their processes. None
// that the batch which ends at that time has counted in is among them.
// Their resources stay, until the next collection: samples of the batch may be theirs.
func (s *Sums) forgetQuiet(a *account, now uint64) {
	for of := range a.resources {
		for _, se := range of.series {
			if s.quiet(se, now) {
				s.forgetSeries(se)
				s.floor = s.last
			}
		}
	}
}

// makeRoom lets go of series that are quiet at a time, and of resources that have no others, until there are so many bytes
// less: first of the account that has most. No batch is being added.
func (s *Sums) makeRoom(now uint64, bytes int) {
	enough := s.bytes - bytes
	all := append(slices.Collect(maps.Values(s.accounts)), &s.others)
	slices.SortFunc(all, func(a, b *account) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, a := range all {
		if s.bytes <= enough {
			return
		}
		s.forgetQuiet(a, now)
		for of := range a.resources {
			if len(of.series) == 0 {
				s.forget(of)
			}
		}
	}
}

// forgetQuietAccount lets go of the account of which all has been quiet for longest at a time, and reports whether there
// is one. Where there is none, it looks for one again after the next collection.
func (s *Sums) forgetQuietAccount(now uint64) bool {
	next := s.collections + 1
	if s.sought == next {
		return false
	}
	var user uint32
	var quietest *account
	var since uint64
	for uid, a := range s.accounts {
		if last, quiet := s.quietSince(a, now); quiet && (quietest == nil || last < since) {
			user, quietest, since = uid, a, last
		}
	}
	if quietest == nil {
		s.sought = next
		return false
	}
	for of := range quietest.resources {
		s.forget(of)
	}
	s.floor = s.last
	delete(s.accounts, user)
	return true
}

// quietSince returns when the last sample of an account's series was, and whether all of them are quiet at a time.
func (s *Sums) quietSince(a *account, now uint64) (last uint64, quiet bool) {
	for of := range a.resources {
		for _, se := range of.series {
			if !s.quiet(se, now) {
				return 0, false
			}
			last = max(last, se.last)
		}
	}
	return last, true
}
