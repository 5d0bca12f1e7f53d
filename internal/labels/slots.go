package labels

import (
	"cmp"
	"math"
	"time"
)

// A slot is a place among the Budgets.Users users with budgets of their own. It becomes free only where another user
// wants one and there is none left: until then a user's keys, with their types, outlive any pause.
//
// Its user is idle as long as no Channel has an account of him. So nothing that is remembered has ids of his keys when
// they go, and who comes in his place, or comes back, begins with a user of his own.
const (
	// lendAfter is how long a user has been idle whose slot another one of the same user id may have (another
	// container), or one of a user id with fewer slots. Who can make many containers takes his own slots and, beyond
	// as many as others have, none of theirs.
	lendAfter = 10 * time.Minute
	// freeAfter is how long one has been idle whose slot anybody may have.
	freeAfter = 24 * time.Hour
)

// maxSharing user ids are known that have had no slot in an interval. Where there are more, nobody has a new one in it.
const maxSharing = 64

// anyBirth is the limit of who has not had to share in an interval.
const anyBirth = math.MaxUint64

// hold returns the account of a user who has none in this interval yet, and keeps him from being freed. Who had to
// share the others' once shares them to the end of the interval, so that equal sets are one: no user of that user id
// who gets a slot after that, be it by way of another Channel, has it in this one. Those who have one all along do.
func (c *Channel) hold(id User) *account {
	r := c.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	u, limit := r.users[id], c.limit(id.UID)
	if u == nil && limit == anyBirth && (len(r.users) < r.opts.Budgets.Users || r.free(id.UID)) {
		u = r.add(id)
	}
	if u == nil || u.born > limit {
		return c.share(id.UID)
	}
	u.holders++
	a := newAccount(u)
	c.accounts[id] = a
	return a
}

// limit is the last slot that a user with this user id may have in this interval.
func (c *Channel) limit(uid uint32) uint64 {
	if born, ok := c.sharing[uid]; ok {
		return born
	}
	return c.born
}

// share returns the others' account, for one with a user id.
func (c *Channel) share(uid uint32) *account {
	r := c.registry
	if c.limit(uid) == anyBirth {
		if len(c.sharing) < maxSharing {
			c.sharing[uid] = r.born
		} else {
			c.born = r.born
		}
	}
	if c.others == nil {
		c.others = newAccount(r.shared())
		c.others.user.holders++
	}
	return c.others
}

// release is the end of an account that hold has given.
func (r *Registry) release(u *user, nowNs uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u.holders--
	u.idleNs = max(u.idleNs, nowNs)
}

// tick takes note of the time.
func (r *Registry) tick(nowNs uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nowNs = max(r.nowNs, nowNs)
}

// add gives a user a slot.
func (r *Registry) add(id User) *user {
	r.born++
	u := newUser(id, r.totalsOf(id.UID), &r.keyBytes)
	u.born = r.born
	r.users[id] = u
	r.slots[id.UID]++
	return u
}

// shared returns the user for those without a slot. If there was none of them for long, their keys are forgotten.
func (r *Registry) shared() *user {
	if r.idle(r.others) >= lendAfter {
		r.others.forget()
		r.others = r.newOthers()
	}
	return r.others
}

// idle is how long a user has had no account; 0 if he has one.
func (r *Registry) idle(u *user) time.Duration {
	if u.holders > 0 || u.idleNs >= r.nowNs {
		return 0
	}
	return time.Duration(r.nowNs - u.idleNs)
}

// free takes the slot of an idle user for one with a user id, one of the same if there is any, and of these the one
// that has been idle longest; false if no slot may be taken.
func (r *Registry) free(uid uint32) bool {
	other := func(u *user) int {
		if u.id.UID == uid {
			return 0
		}
		return 1
	}
	var found *user
	for _, u := range r.users {
		idle := r.idle(u)
		if idle < lendAfter || idle < freeAfter && u.id.UID != uid && r.slots[u.id.UID] <= r.slots[uid] {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(other(u), other(found)), cmp.Compare(u.idleNs, found.idleNs), cmp.Compare(u.born, found.born)) < 0 {
			found = u
		}
	}
	if found == nil {
		return false
	}
	found.forget()
	delete(r.users, found.id)
	if r.slots[found.id.UID]--; r.slots[found.id.UID] == 0 {
		delete(r.slots, found.id.UID)
	}
	return true
}
