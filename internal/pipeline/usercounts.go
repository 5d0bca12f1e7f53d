package pipeline

import (
	"sync"
	"sync/atomic"
)

// userCounts is what happened to samples of users because of the users, by series.
type userCounts struct {
	dropped    [maxUserSeries + 1]atomic.Int64 // early batches that found no room
	lostLabels [maxUserSeries + 1]atomic.Int64 // BatchOptions.MaxUserEntries
	lostStacks [maxUserSeries + 1]atomic.Int64 // twice as many
	lostFrames [maxUserSeries + 1]atomic.Int64 // BatchOptions.MaxUserFrames
}

func (c *userCounts) pendingFull(series, samples int) { c.dropped[series].Add(int64(samples)) }

func (c *userCounts) overflow(series, labels, stacks, frames int) {
	c.lostLabels[series].Add(int64(labels))
	c.lostStacks[series].Add(int64(stacks))
	c.lostFrames[series].Add(int64(frames))
}

func loaded(counts *[maxUserSeries + 1]atomic.Int64) (values ByUser) {
	for i := range counts {
		values[i] = counts[i].Load()
	}
	return values
}

func sum(a, b ByUser) ByUser {
	for i := range b {
		a[i] += b[i]
	}
	return a
}

// userDrops adds up the samples that found no room in the share of their user, by the
// user's series. The kernel counts them by user and forgets users who were not seen for
// long, so the differences between two looks are added.
type userDrops struct {
	mu    sync.Mutex
	total uint64            // of all users at the last look
	last  map[uint32]uint64 // by uid
	sums  ByUser
}

// update takes another look, if the total has changed, and returns the sums. When read
// fails, they stay what they were.
func (d *userDrops) update(series *userSeries, total uint64, read func() (map[uint32]uint64, error)) ByUser {
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
