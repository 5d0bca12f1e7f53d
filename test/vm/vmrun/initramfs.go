//go:build linux

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

// Directories that guestinit mounts something on, or programs expect.
var guestDirs = [...]string{
	"/proc", "/sys", "/dev", "/tmp", "/run", "/root", "/etc", "/.root", guest.Dir, guest.OutDir,
}

// writeInitramfs writes what the guest has: guestDirs, a console, its configuration and
// the additions, of which the first of one name wins. It is not compressed: unpacking
// under emulation would take longer than copying.
func writeInitramfs(w io.Writer, config []byte, adds []addition) error {
	c := newCPIO(w)
	for _, d := range guestDirs {
		c.dir(d)
	}
	c.device("/dev/console", 0o600, 5, 1)
	c.file(guest.ConfigPath, 0o644, config)
	for _, a := range adds {
		if err := addTree(c, a); err != nil {
			return err
		}
	}
	return c.close()
}

func addTree(c *cpio, a addition) error {
	root, err := filepath.EvalSymlinks(a.from) // links below stay links
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(from string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, from)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		to := path.Join("/", a.to, filepath.ToSlash(rel))
		switch mode := info.Mode(); {
		case mode.IsDir():
			c.dir(to)
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			c.link(to, target)
		case mode.IsRegular():
			b, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			c.file(to, uint32(mode.Perm()), b)
		default:
			return fmt.Errorf("%s: neither file nor directory nor link", from)
		}
		return nil
	})
}
