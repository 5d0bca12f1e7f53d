// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
)

// listener bounds the connections without keeping anybody out: for one too many, that
// one ends which has been silent longest.
type listener struct {
	net.Listener
	most int

	mu     sync.Mutex
	conns  *list.List       // of *conn, the one that spoke last in front
	byPeer map[string]*conn // by the address of the other side
}

// listen listens at a TCP address, for most connections at a time.
func listen(address string, most int) (*listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, most: most, conns: list.New(), byPeer: map[string]*conn{}}, nil
}

// conn is a connection in its listener's order.
type conn struct {
	net.Conn
	listener *listener
	place    *list.Element
	read     atomic.Int64 // bytes
	turn     uint64       // when it last had a place; guarded by places.mu
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l}
	l.mu.Lock()
	c.place = l.conns.PushFront(c)
	l.byPeer[c.RemoteAddr().String()] = c
	var silent *conn
	if l.conns.Len() > l.most {
		silent, _ = l.conns.Back().Value.(*conn)
	}
	l.mu.Unlock()
	if silent != nil {
		_ = silent.Close() // whoever serves it notices
	}
	return c, nil
}

// from returns the connection from an address, nil if there is none any more.
func (l *listener) from(peer net.Addr) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byPeer[peer.String()]
}

// Read notes that the other side has spoken.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read.Add(int64(n))
		c.listener.mu.Lock()
		c.listener.conns.MoveToFront(c.place)
		c.listener.mu.Unlock()
	}
	return n, err
}

// Close makes room for another one.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.conns.Remove(c.place) // nothing, the second time
	if peer := c.RemoteAddr().String(); c.listener.byPeer[peer] == c {
		delete(c.listener.byPeer, peer)
	}
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
