//go:build linux

package executable

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxClosers bounds the goroutines that close files.
	maxClosers = 4
	// maxClosing is how long the end waits for files to be closed.
	maxClosing = time.Second
)

// A closer closes files by itself: to close one waits for its file server (FUSE_FLUSH,
// fs/fuse/file.c), which nobody else has to.
type closer struct {
	mu      sync.Mutex
	fds     []int
	running int
	idle    chan struct{} // closed when none runs; nil: nobody waits for that
}

func (c *closer) close(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fds = append(c.fds, fd)
	if c.running < maxClosers {
		c.running++
		go c.run()
	}
}

// waiting returns how many files have to wait until others are closed.
func (c *closer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fds)
}

// wait waits until all files are closed, at most for a time: one may never be.
func (c *closer) wait(d time.Duration) {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

func (c *closer) run() {
	for {
		fd, ok := c.next()
		if !ok {
			return
		}
		_ = unix.Close(fd) // opened for reading: nothing can be lost
	}
}

func (c *closer) next() (fd int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fds) == 0 {
		c.running--
		if c.running == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
		return -1, false
	}
	fd, c.fds = c.fds[0], c.fds[1:]
	return fd, true
}
