//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"
)

// File types of st_mode.
const (
	modeDir    = 0o040000
	modeChar   = 0o020000
	modeFile   = 0o100000
	modeLink   = 0o120000
	cpioMagic  = "070701" // "newc", the kernel's Documentation/driver-api/early-userspace/buffer-format.rst
	cpioAlign  = 4
	cpioEnding = "TRAILER!!!"
)

// A cpio writes an archive that the kernel unpacks as its first root. Directories above
// an entry are made; of two entries with one name the first wins; the first error stays.
type cpio struct {
	w    io.Writer
	ino  int
	seen map[string]bool
	err  error
}

func newCPIO(w io.Writer) *cpio { return &cpio{w: w, seen: map[string]bool{"/": true}} }

func (c *cpio) dir(name string) { c.add(name, modeDir|0o755, nil, 0, 0) }

func (c *cpio) file(name string, perm uint32, data []byte) { c.add(name, modeFile|perm, data, 0, 0) }

func (c *cpio) link(name, target string) { c.add(name, modeLink|0o777, []byte(target), 0, 0) }

func (c *cpio) device(name string, perm uint32, major, minor int) {
	c.add(name, modeChar|perm, nil, major, minor)
}

// close writes the end of the archive and returns the first error of all.
func (c *cpio) close() error {
	c.entry(cpioEnding, 0, nil, 0, 0)
	return c.err
}

func (c *cpio) add(name string, mode uint32, data []byte, major, minor int) {
	if c.seen[name] {
		return
	}
	c.seen[name] = true
	if parent := path.Dir(name); !c.seen[parent] {
		c.dir(parent)
	}
	c.entry(strings.TrimPrefix(name, "/"), mode, data, major, minor)
}

func (c *cpio) entry(name string, mode uint32, data []byte, major, minor int) {
	c.ino++
	var b bytes.Buffer
	b.WriteString(cpioMagic)
	const links, none = 1, 0
	for _, field := range []int{
		c.ino, int(mode), none, none, links, none, len(data), none, none, major, minor, len(name) + 1, none,
	} {
		fmt.Fprintf(&b, "%08X", field)
	}
	b.WriteString(name)
	b.WriteByte(0)
	pad(&b)
	b.Write(data)
	pad(&b)
	if _, err := c.w.Write(b.Bytes()); err != nil && c.err == nil {
		c.err = err
	}
}

func pad(b *bytes.Buffer) {
	for b.Len()%cpioAlign != 0 {
		b.WriteByte(0)
	}
}
