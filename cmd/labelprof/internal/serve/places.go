// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"slices"
	"sync"
)

// places bounds the requests that are taken off the wire at once. Who waits for one is served by connections in turn:
// the one that had none for longest goes first, so that many requests of one connection do not hold up another.
type places struct {
	mu      sync.Mutex
	free    int
	turns   uint64
	waiting []*waiter // in the order in which they came
}

// waiter is a request that waits for a place.
type waiter struct {
	conn  *conn
	ready chan struct{} // closed when it has one
}

// take waits for a place, which is to be given back.
func (p *places) take(ctx context.Context, c *conn) error {
	p.mu.Lock()
	if c.turn == 0 { // it has come just now
		p.serve(c)
	}
	if p.free > 0 {
		p.free--
		p.serve(c)
		p.mu.Unlock()
		return nil
	}
	w := &waiter{c, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		p.next() // it has got one meanwhile
	}
	return ctx.Err()
}

// give gives a place back.
func (p *places) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next()
}

// next gives a place to who is to have it next. p.mu is held.
func (p *places) next() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	first := 0
	for i, w := range p.waiting {
		if w.conn.turn < p.waiting[first].conn.turn {
			first = i
		}
	}
	w := p.waiting[first]
	p.waiting = slices.Delete(p.waiting, first, first+1)
	p.serve(w.conn)
	close(w.ready)
}

// serve notes that a connection has had its turn. p.mu is held.
func (p *places) serve(c *conn) {
	p.turns++
	c.turn = p.turns
}

// wanted reports whether somebody waits.
func (p *places) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0
}
