//go:build linux

package executable

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// Contents is a file that is open for reading.
//
// When a process writes to a file of an image, overlayfs copies it. Who has the file open reads
// the copy from then on, while processes that map it keep the one of the image, which other
// containers map, too. So what is read of overlayfs is believed if the file is the same
// afterwards: the copy has another time of change, which nobody can set.
type Contents struct {
	file *os.File
	id   procfs.FileID // on overlayfs, what it must be; else zero
}

// newContents is of an open file of this identity. It fails if it is another one by now.
func newContents(file *os.File, id procfs.FileID) (*Contents, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &st); err != nil {
		return nil, fmt.Errorf("stat filesystem: %w", err)
	}
	if st.Type != unix.OVERLAYFS_SUPER_MAGIC {
		return &Contents{file: file}, nil
	}
	c := &Contents{file: file, id: id}
	err := c.check()
	return c, err
}

// check reports whether the file is another one now.
func (c *Contents) check() error {
	if c.id == (procfs.FileID{}) {
		return nil
	}
	if id, err := procfs.Identify(c.file); err != nil {
		return err
	} else if id != c.id {
		return procfs.ErrReplaced
	}
	return nil
}

// ReadAt implements io.ReaderAt. It fails with procfs.ErrReplaced if the file is another one.
func (c *Contents) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.file.ReadAt(p, off)
	if changed := c.check(); changed != nil {
		return 0, changed
	}
	return n, err
}

// Close closes the file.
func (c *Contents) Close() error { return c.file.Close() }
