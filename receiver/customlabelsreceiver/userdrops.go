package customlabelsreceiver

import "sync"

// userDrops adds up the samples that found no room in the share of their user, by the
// user's series. The kernel counts them by user and forgets users who were not seen for
// long, so the differences between two looks are added.
type userDrops struct {
	mu    sync.Mutex
	total uint64            // of all users at the last look
	last  map[uint32]uint64 // by uid
	sums  byUser
}

// update takes another look, if the total has changed, and returns the sums. When read
// fails, they stay what they were.
func (d *userDrops) update(series *userSeries, total uint64, read func() (map[uint32]uint64, error)) byUser {
	d.mu.Lock()
	defer d.mu.Unlock()
	if total == d.total {
		return d.sums
	}
	now, err := read()
	if err != nil {
		return d.sums
	}
	for uid, n := range now {
		before := d.last[uid]
		if before > n {
			before = 0 // it was forgotten meanwhile
		}
		d.sums[series.of(uid)] += int64(n - before)
	}
	d.total, d.last = total, now
	return d.sums
}
