package pipeline

import (
	"slices"
	"sync"
)

// maxUserSeries users have a series of their own in all that is counted by user; the rest
// of them share one, so that a host with many users does not multiply our metrics.
const maxUserSeries = 64

// OtherUsers is the series of all users without one of their own.
const OtherUsers = maxUserSeries

// ByUser is one value for each series: of the users in the order of [Snapshot].Users, and
// under OtherUsers of the rest.
type ByUser [maxUserSeries + 1]int64

// userSeries gives users their series, in the order in which they are first met and
// for good. One is shared by all that a pipeline counts. Its methods may be called from
// everywhere.
type userSeries struct {
	mu     sync.Mutex
	series map[uint32]int
	uids   []uint32
}

// of returns the series of a user: OtherUsers, or a number below it.
func (u *userSeries) of(uid uint32) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i, ok := u.series[uid]; ok {
		return i
	}
	if len(u.uids) == maxUserSeries {
		return OtherUsers
	}
	if u.series == nil {
		u.series = map[uint32]int{}
	}
	i := len(u.uids)
	u.series[uid] = i
	u.uids = append(u.uids, uid)
	return i
}

// users returns those that have a series, by its number.
func (u *userSeries) users() []uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.uids)
}
