//go:build linux

package executable

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxClosers bounds the goroutines that close files, one at a time of each device: a file server
	// that does not answer holds one.
	maxClosers = 16
	// maxClosing is how long the end waits for files to be closed.
	maxClosing = time.Second
)

// A closer closes files by itself: to close one waits for its file server (FUSE_FLUSH,
// fs/fuse/file.c), which nobody else has to.
type closer struct {
	mu      sync.Mutex
	files   []closing
	running map[device]struct{} // of which one is being closed
	idle    chan struct{}       // closed when none is; nil: nobody waits for that
}

// device tells file systems apart.
type device struct{ major, minor uint32 }

// closing is a file to close.
type closing struct {
	fd int
	of device
}

func (c *closer) close(fd int, of device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[device]struct{}{}
	}
	c.files = append(c.files, closing{fd, of})
	if len(c.running) == maxClosers {
		return
	}
	if next, ok := c.take(); ok {
		go c.run(next)
	}
}

// waiting returns how many files have to wait until others are closed.
func (c *closer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.files)
}

// wait waits until all files are closed, at most for a time: one may never be.
func (c *closer) wait(d time.Duration) {
	c.mu.Lock()
	if len(c.running) == 0 {
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

func (c *closer) run(f closing) {
	for ok := true; ok; f, ok = c.next(f) {
		_ = unix.Close(f.fd) // opened for reading: nothing can be lost
	}
}

// next notes that a file is closed, and takes another one.
func (c *closer) next(closed closing) (f closing, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, closed.of)
	if f, ok = c.take(); !ok && len(c.running) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
	return f, ok
}

// take takes the first file of a device of which none is being closed. c.mu is held.
func (c *closer) take() (f closing, ok bool) {
	for i := range c.files {
		f = c.files[i]
		if _, busy := c.running[f.of]; !busy {
			c.files = slices.Delete(c.files, i, i+1)
			c.running[f.of] = struct{}{}
			return f, true
		}
	}
	return closing{}, false
}
