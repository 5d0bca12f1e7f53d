//go:build linux && (amd64 || arm64)

package bpf

import "time"

// ticks of a clock are due each period from when it was enabled, on idle CPUs, too. The kernel's
// timer goes by CLOCK_MONOTONIC, as Go's time does, and a late tick does not move the next ones
// (perf_swevent_hrtimer in kernel/events/core.c). The event's own count would not do for what is
// due: it goes by the scheduler's clock, which drifts, and can lack the time in which the kernel throttles.
type ticks struct {
	period  time.Duration
	enabled time.Time
	before  uint64 // hits of the CPU until then
	eventNs uint64 // the event's count at the last look
	seen    uint64 // missing at the last look
	missed  uint64 // of these, what is certain; never less than before
}

// look notes what is missing: now is read first, then the hits of the CPU, then the event's count. It
// reports whether the event has counted since the last look. Only then what that look saw is
// certain: of a CPU that has gone offline meanwhile no more ticks are due.
func (t *ticks) look(now time.Time, hits, eventNs uint64) (alive bool) {
	alive = t.confirm(eventNs)
	// One tick a CPU may be due and not delivered yet: of several late ones the kernel delivers one.
	const underWay = 1
	due, delivered := uint64(max(0, now.Sub(t.enabled)/t.period)), hits-t.before
	t.seen = due - min(due, delivered+underWay)
	return alive
}

// confirm makes what the last look saw certain, if the event has counted since.
func (t *ticks) confirm(eventNs uint64) (alive bool) {
	alive, t.eventNs = eventNs != t.eventNs, eventNs
	if alive {
		t.missed = max(t.missed, t.seen)
	}
	return alive
}
