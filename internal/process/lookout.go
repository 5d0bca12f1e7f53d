//go:build linux

package process

import (
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// lookout looks after workers that read a process, in case that takes long.
type lookout struct {
	alarm *wakeup.Alarm

	mu sync.Mutex
	// looks is when to look after whom.
	looks map[*worker]time.Time
	// at is what the alarm is set to; zero: it is not, or has gone off.
	at time.Time
}

func newLookout(alarm *wakeup.Alarm) *lookout {
	return &lookout{alarm: alarm, looks: map[*worker]time.Time{}}
}

// set has a worker looked after when some time has passed; 0: not any more.
func (l *lookout) set(w *worker, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after > 0 {
		l.looks[w] = time.Now().Add(after)
		l.setAlarm()
		return
	}
	delete(l.looks, w)
	if len(l.looks) == 0 && !l.at.IsZero() {
		l.at = time.Time{}
		l.alarm.Clear()
	}
}

// setAlarm sets the alarm to the first time, unless it goes off before. The lookout is locked.
func (l *lookout) setAlarm() {
	first := l.at
	for _, at := range l.looks {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if !first.Equal(l.at) {
		l.at = first
		l.alarm.Set(time.Until(first))
	}
}

// take returns those whose time has come.
func (l *lookout) take() []*worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []*worker
	now := time.Now()
	for w, at := range l.looks {
		if !at.After(now) {
			due = append(due, w)
			delete(l.looks, w)
		}
	}
	l.at = time.Time{}
	l.setAlarm()
	return due
}

// run calls late for each worker whose time has come, until the alarm is closed.
func (l *lookout) run(late func(*worker)) {
	for l.alarm.Wait() == nil {
		for _, w := range l.take() {
			late(w)
		}
	}
}
