// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"container/list"
	"net"
	"sync"
)

// listener bounds the connections without keeping anybody out: for one too many, that
// one ends which has been silent longest.
type listener struct {
	net.Listener
	most int

	mu    sync.Mutex
	conns *list.List // of *conn, the one that spoke last in front
}

// listen listens at a TCP address, for most connections at a time.
func listen(address string, most int) (*listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &listener{Listener: l, most: most, conns: list.New()}, nil
}

// conn is a connection in its listener's order.
type conn struct {
	net.Conn
	listener *listener
	place    *list.Element
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

// Read notes that the other side has spoken.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
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
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
