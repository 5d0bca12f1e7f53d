package labels

import "slices"

// Origin is where a sample comes from.
type Origin struct {
	User
	Executable string // path as the process's mount namespace shows it; "" if not known
}

// A Channel decodes the label sections of one kind of profile, applies the rules and
// holds users to their budgets. It belongs to one goroutine.
//
// What it remembers lives for an interval. In it, a section seen before costs one map
// lookup and no allocation, and equal sets of one user have the same pointer. What a
// user publishes has no part in what another one's sections give.
type Channel struct {
	registry *Registry
	number   int
	decoder  decoder
	accounts map[User]*account
	others   *account // of all without a slot; nil if there was none
	// Users of these user ids, and of all others, whose slot was given later than that one share the others' account.
	sharing map[uint32]uint64
	born    uint64

	// Of the last sample, which the next one is mostly like.
	last        Origin
	lastAccount *account
	lastRules   *ruleSet

	bytes int
	reads int // of these, of what was read
}

// NewChannel returns a Channel in its first interval.
func (r *Registry) NewChannel() *Channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Channel{registry: r, number: r.channels, accounts: map[User]*account{}, sharing: map[uint32]uint64{}, born: anyBirth}
	r.channels++
	return c
}

// Decode returns the meaning of the label section of a sample record (label blocks as in
// internal/bpf/src/record.h, little endian), in which keys names the thread context's
// key indexes, as far as the rules and the user's budgets let it pass: past a budget
// there is OverflowSet and no link. Decode keeps no reference to section.
//
// Registry.Count counts what it has found; not Decode, because a sample may be decoded
// more than once.
func (c *Channel) Decode(from Origin, keys *KeyMap, section []byte) *Decoded {
	if len(section) == 0 {
		return emptyDecoded
	}
	if c.lastAccount == nil || from != c.last {
		c.choose(&from)
	}
	a, rules := c.lastAccount, c.lastRules
	escaped := a.user.escaped.Load()
	if d, ok := a.results[resultKey{keys, rules, escaped, string(section)}]; ok {
		return d
	}
	before, reads := a.bytes(), a.resultBytes
	d := c.decode(a, rules, from.Executable, keys, section)
	a.remember(keys, rules, escaped, section, d, c.registry.opts.Budgets.Bytes)
	c.bytes += a.bytes() - before
	c.reads += a.resultBytes - reads
	return d
}

// choose finds the account and the rules of a sample.
func (c *Channel) choose(from *Origin) {
	a := c.account(from.User)
	reads := a.resultBytes
	c.last, c.lastAccount, c.lastRules = *from, a, a.rules(c.registry, from)
	c.bytes += a.resultBytes - reads
	c.reads += a.resultBytes - reads
}

// UnknownKeys reports whether a section has attributes without a name. It costs more than
// a Decode that is remembered, but is not held against anyone: what is in the section may
// turn out to be no labels at all.
func (c *Channel) UnknownKeys(keys *KeyMap, section []byte) bool {
	d := &c.decoder
	d.decode(keys, section)
	clear(d.entries) // they point into section
	return d.out.Counts[AnomalyUnknownKey] > 0
}

func (c *Channel) account(id User) *account {
	if a, ok := c.accounts[id]; ok {
		return a
	}
	return c.hold(id)
}

func (c *Channel) decode(a *account, rules *ruleSet, executable string, keys *KeyMap, section []byte) *Decoded {
	d, opts := &c.decoder, &c.registry.opts
	d.decode(keys, section)
	d.merge()
	d.promote(&opts.Promotion)
	t := tally{user: a.user}
	rules.apply(d, &t)
	conflicts, ok := a.user.admit(d, &t, opts.Budgets.Keys, opts.Refuse)
	set, budget := (*Set)(nil), BudgetKeys
	if ok {
		a.cap(d, opts.Budgets.Bytes)
		set, budget, ok = a.set(d, &opts.Budgets)
	}
	if !ok {
		set = emptyOverflowSet
		t.overflow, t.overflowed = budget, true
		d.out.Link, d.out.Flags, d.out.Promoted = Link{}, 0, false
	}
	result := d.out
	result.Set, result.Reads = set, slices.Clone(d.reads)
	if t.needed() {
		result.tally = &t
	}
	clear(d.entries) // they point into section
	if report := opts.OnConflict; report != nil {
		for _, x := range conflicts {
			x.Executable = Escape(executable)
			report(x)
		}
	}
	return &result
}

// EndInterval begins a new interval, at a time of any monotonic clock which all Channels of a Registry share: budgets of
// intervals are whole again. Sets given out before stay valid, but are not identical to equal ones from now on.
func (c *Channel) EndInterval(nowNs uint64) {
	c.registry.tick(nowNs)
	for id, a := range c.accounts {
		if !c.endAccount(a, nowNs) {
			delete(c.accounts, id)
		}
	}
	if c.others != nil && !c.endAccount(c.others, nowNs) {
		c.others = nil
	}
	clear(c.sharing)
	c.born = anyBirth
	c.last, c.lastAccount, c.lastRules = Origin{}, nil, nil
	c.bytes, c.reads = 0, 0
}

// endAccount reports whether an account is kept for the next interval; one in which nothing was is not.
func (c *Channel) endAccount(a *account, nowNs uint64) bool {
	a.user.use(c.number, a.used())
	if a.idle() {
		c.registry.release(a.user, nowNs)
		return false
	}
	a.reset()
	return true
}

// ForgetReads makes room without changing what is given out: sections have to be decoded
// again.
func (c *Channel) ForgetReads() {
	if c.others != nil {
		c.bytes -= c.others.forgetReads()
	}
	for _, a := range c.accounts {
		c.bytes -= a.forgetReads()
	}
	c.reads = 0
	c.last, c.lastAccount, c.lastRules = Origin{}, nil, nil
}

// ReadBytes are those of Bytes that ForgetReads frees.
func (c *Channel) ReadBytes() int { return c.reads }

// KeyBytes are those of Bytes that outlive an interval: the keys of the Registry, which are with
// its first Channel.
func (c *Channel) KeyBytes() int {
	if c.number == 0 {
		return int(c.registry.keyBytes.Load())
	}
	return 0
}

// Bytes estimates the memory of what is remembered.
func (c *Channel) Bytes() int { return c.bytes + c.KeyBytes() }
