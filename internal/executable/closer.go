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
	// that does not answer holds one. maxUserClosers of them close what was kept for one user's processes,
	// maxOwnerClosers what was for those in one container.
	maxClosers, maxUserClosers, maxOwnerClosers = 16, 8, 4
	// maxClosing is how long the end waits for files to be closed.
	maxClosing = time.Second
)

// A closer closes files by itself: to close one waits for its file server (FUSE_FLUSH,
// fs/fuse/file.c), which nobody else has to.
type closer struct {
	mu      sync.Mutex
	files   []closing
	running map[device]Owner // of which one is being closed, and for whom it was kept
	idle    chan struct{}    // closed when none is; nil: nobody waits for that
}

// device tells file systems apart.
type device struct{ major, minor uint32 }

// closing is a file to close.
type closing struct {
	fd int
	of device
	by Owner // for whom it was kept
}

func (c *closer) close(f closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[device]Owner{}
	}
	c.files = append(c.files, f)
	c.begin()
}

// begin has closed what may be. c.mu is held.
func (c *closer) begin() {
	for f, ok := c.take(); ok; f, ok = c.take() {
		go c.run(f)
	}
}

// waiting returns how many files have to wait until others are closed, and how many of them were kept for the user of an
// owner, and for the owner.
func (c *closer) waiting(by Owner) (all, ofUser, ofOwner int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.files {
		if c.files[i].by.UID == by.UID {
			ofUser++
		}
		if c.files[i].by == by {
			ofOwner++
		}
	}
	return len(c.files), ofUser, ofOwner
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
	f, ok = c.take()
	c.begin() // where one that was closed kept several
	if !ok && len(c.running) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
	return f, ok
}

// take takes the first file that may be closed. c.mu is held.
func (c *closer) take() (f closing, ok bool) {
	i := slices.IndexFunc(c.files, c.may)
	if i < 0 {
		return closing{}, false
	}
	f = c.files[i]
	c.files = slices.Delete(c.files, i, i+1)
	c.running[f.of] = f.by
	return f, true
}

// may reports whether a file may be closed: none of its device is being closed, and not too many of its user's and of
// its owner's are. c.mu is held.
func (c *closer) may(f closing) bool {
	user, owner := 0, 0
	for of, by := range c.running {
		if of == f.of {
			return false
		}
		if by.UID == f.by.UID {
			user++
		}
		if by == f.by {
			owner++
		}
	}
	return len(c.running) < maxClosers && user < maxUserClosers && owner < maxOwnerClosers
}
