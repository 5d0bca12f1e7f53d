package customlabelsreceiver

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// maxUserSeries users have a series of their own in each metric by user; the rest of
// them share one, so that a host with many users does not multiply our metrics.
const maxUserSeries = 64

// otherUsers is the series of all users without one of their own.
const otherUsers = maxUserSeries

// Attributes of metrics by user.
const (
	attrUserID     = "user.id"    // in the init user namespace
	attrUserOthers = "user.other" // true, instead of an id: the users beyond maxUserSeries
)

// userSeries gives users their series, in the order in which they are first met and
// for good. One is shared by all metrics of a receiver. Its methods may be called from
// everywhere.
type userSeries struct {
	mu     sync.Mutex
	series map[uint32]int
	uids   []uint32
}

// of returns the series of a user: otherUsers, or a number below it.
func (u *userSeries) of(uid uint32) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i, ok := u.series[uid]; ok {
		return i
	}
	if len(u.uids) == maxUserSeries {
		return otherUsers
	}
	if u.series == nil {
		u.series = map[uint32]int{}
	}
	i := len(u.uids)
	u.series[uid] = i
	u.uids = append(u.uids, uid)
	return i
}

// attribute returns what tells a series from others.
func (u *userSeries) attribute(series int) attribute.KeyValue {
	u.mu.Lock()
	defer u.mu.Unlock()
	if series >= len(u.uids) {
		return attribute.Bool(attrUserOthers, true)
	}
	return attribute.Int64(attrUserID, int64(u.uids[series]))
}

// byUser is one value for each series.
type byUser [maxUserSeries + 1]int64

// observe passes on the values that are not 0.
func (u *userSeries) observe(o metric.Observer, instrument metric.Int64Observable, values *byUser, attrs ...attribute.KeyValue) {
	for series, n := range values {
		if n != 0 {
			all := append([]attribute.KeyValue{u.attribute(series)}, attrs...)
			o.ObserveInt64(instrument, n, metric.WithAttributeSet(attribute.NewSet(all...)))
		}
	}
}
