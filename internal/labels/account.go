package labels

import "slices"

// maxViews of a user, by executable, are looked up rather than made at each sample.
const maxViews = 256

// viewBytes is the rough cost of what is remembered by executable, beside its path and rules, map
// buckets included; ruleBytes that of a rule in it.
const (
	viewBytes = 160
	ruleBytes = 8
)

// Rough costs of what is remembered beside its bytes, map buckets included.
const (
	valueBytes   = 80
	decodedBytes = 192
	setBytes     = 152
	labelBytes   = 40
	escapedBytes = 32
	readBytes    = 2
)

// account is what a Channel knows of a user in an interval.
type account struct {
	user *user

	results     map[resultKey]*Decoded
	resultBytes int                  // with keyMaps and views
	keyMaps     map[*KeyMap]struct{} // that results hold on to
	views       map[view]*ruleSet

	sets     map[string]*Set // by encoding
	setBytes int
	values   map[keyValue]struct{}
	// Of keys with a cap: values, and how many a key has.
	capped      map[keyValue]struct{}
	cappedCount map[uint32]int
}

// resultKey has all that a result depends on.
type resultKey struct {
	keys    *KeyMap
	rules   *ruleSet
	escaped uint32 // user.escaped
	section string
}

// view is what rules are chosen by.
type view struct {
	uid        uint32
	executable string
}

// keyValue is a value of a key.
type keyValue struct {
	key  uint32
	text string
}

func newAccount(u *user) *account {
	a := &account{user: u}
	a.reset()
	return a
}

// reset begins an interval.
func (a *account) reset() {
	a.forgetReads()
	a.sets, a.setBytes = map[string]*Set{}, 0
	a.values = map[keyValue]struct{}{}
	a.capped, a.cappedCount = map[keyValue]struct{}{}, map[uint32]int{}
}

// forgetReads returns how many bytes it has freed.
func (a *account) forgetReads() int {
	freed := a.resultBytes
	a.results, a.resultBytes = map[resultKey]*Decoded{}, 0
	a.keyMaps = map[*KeyMap]struct{}{}
	a.views = map[view]*ruleSet{}
	return freed
}

func (a *account) bytes() int { return a.resultBytes + a.setBytes }

// idle reports whether there was nothing in the interval.
func (a *account) idle() bool { return len(a.sets) == 0 && len(a.results) == 0 && len(a.views) == 0 }

func (a *account) used() (used [NumBudgets]int) {
	used[BudgetValues], used[BudgetSets], used[BudgetBytes] = len(a.values), len(a.sets), a.setBytes
	return used
}

// rules returns those for a process.
func (a *account) rules(r *Registry, from *Origin) *ruleSet {
	if len(r.rules) == 0 {
		return nil
	}
	v := view{uid: from.UID}
	if r.executables {
		v.executable = from.Executable
	}
	if s, ok := a.views[v]; ok {
		return s
	}
	room := len(a.views) < maxViews && a.resultBytes < r.opts.Budgets.Bytes
	s := &ruleSet{salt: r.opts.Salt, known: room}
	for i := range r.rules {
		if r.rules[i].concerns(v.uid, v.executable) {
			s.rules = append(s.rules, &r.rules[i])
		}
	}
	if room {
		a.resultBytes += viewBytes + len(v.executable) + ruleBytes*cap(s.rules)
	}
	if len(s.rules) == 0 {
		s = nil
	}
	if room {
		a.views[v] = s
	}
	return s
}

// remember keeps the result of a read for the rest of the interval, if there is room.
func (a *account) remember(keys *KeyMap, rules *ruleSet, escaped uint32, section []byte, d *Decoded, bytes int) {
	if a.resultBytes >= bytes || rules != nil && !rules.known {
		return
	}
	a.results[resultKey{keys, rules, escaped, string(section)}] = d
	a.resultBytes += decodedBytes + len(section) + readBytes*len(d.Reads)
	if _, ok := a.keyMaps[keys]; !ok && keys != nil {
		a.keyMaps[keys] = struct{}{}
		a.resultBytes += keys.bytes
	}
}

// cap leaves out labels of keys that have as many values as a rule allows.
func (a *account) cap(d *decoder, bytes int) {
	d.entries = slices.DeleteFunc(d.entries, func(e entry) bool {
		if e.limit <= 0 || a.capAllows(&e, bytes) {
			return false
		}
		d.cut = true
		d.out.Counts[AnomalyCappedValue]++
		return true
	})
}

func (a *account) capAllows(e *entry, bytes int) bool {
	if _, ok := a.capped[keyValue{e.name.id, string(e.value)}]; ok {
		return true
	}
	if a.cappedCount[e.name.id] >= e.limit || a.setBytes >= bytes {
		return false
	}
	a.capped[keyValue{e.name.id, string(e.value)}] = struct{}{}
	a.cappedCount[e.name.id]++
	a.setBytes += valueBytes + len(e.value)
	return true
}

// set returns the set of the admitted labels, one for equal ones; or the budget that
// has no room for it.
func (a *account) set(d *decoder, limits *Budgets) (*Set, Budget, bool) {
	if len(d.entries) == 0 {
		if d.cut {
			return emptyTruncatedSet, 0, true
		}
		return emptySet, 0, true
	}
	d.identity = d.appendIdentity(d.identity[:0])
	if s, ok := a.sets[string(d.identity)]; ok {
		return s, 0, true
	}
	if len(a.sets) >= limits.Sets {
		return nil, BudgetSets, false
	}
	fresh := 0
	cost := setBytes + len(d.identity) + labelBytes*len(d.entries)
	for i := range d.entries {
		e := &d.entries[i]
		if e.escaped {
			cost += escapedBytes
		}
		if _, ok := a.values[keyValue{e.name.id, string(e.value)}]; !ok {
			fresh++
			cost += valueBytes
		}
	}
	if len(a.values)+fresh > limits.Values {
		return nil, BudgetValues, false
	}
	if a.setBytes+cost > limits.Bytes {
		return nil, BudgetBytes, false
	}
	a.setBytes += cost
	s := d.shareSet(string(d.identity))
	for i := range s.labels {
		a.values[keyValue{d.entries[i].name.id, s.labels[i].Value}] = struct{}{}
	}
	a.sets[string(d.identity)] = s
	return s, 0, true
}
