//go:build linux

package executable

import (
	"sync"

	"golang.org/x/sys/unix"
)

// maxClosers bounds the goroutines that close files.
const maxClosers = 4

// A closer closes files by itself: to close one waits for its file server (FUSE_FLUSH,
// fs/fuse/file.c), which nobody else has to.
type closer struct {
	mu      sync.Mutex
	fds     []int
	running int
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
		return -1, false
	}
	fd, c.fds = c.fds[0], c.fds[1:]
	return fd, true
}
