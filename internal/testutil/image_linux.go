// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ImageProgram is the name of the only file of an image.
const ImageProgram = "program"

const (
	imageBlock   = 4096
	imageMagic   = 0xe0f5e1e2 // EROFS_SUPER_MAGIC_V1
	imageRoot    = 1          // its inode, of 32 bytes from block 1 on
	imageFile    = 2
	imageTime    = 1e9 // of all files
	imageDirents = 2   // block of the directory
	imageText    = 3   // first block of the file
)

// image is an EROFS with a program: fs/erofs/erofs_fs.h, inodes in the compact form, nothing compressed. Of two that are
// as large, stat(2) says the same.
func image(program []byte) []byte {
	le := binary.LittleEndian
	blocks := imageText + (len(program)+imageBlock-1)/imageBlock
	b := make([]byte, blocks*imageBlock)

	super := b[1024:]
	le.PutUint32(super, imageMagic)
	super[12] = 12 // bits of a block's size
	le.PutUint16(super[14:], imageRoot)
	le.PutUint64(super[16:], 2) // inodes
	le.PutUint64(super[24:], imageTime)
	le.PutUint32(super[36:], uint32(blocks))
	le.PutUint32(super[40:], 1) // block of the inodes

	inode := func(number, mode, links, size, block int) {
		i := b[imageBlock+32*number:]
		le.PutUint16(i[4:], uint16(mode))
		le.PutUint16(i[6:], uint16(links))
		le.PutUint32(i[8:], uint32(size))
		le.PutUint32(i[16:], uint32(block))
		le.PutUint32(i[20:], uint32(number))
	}
	entries := []struct {
		name         string
		inode, ftype int
	}{{".", imageRoot, 2}, {"..", imageRoot, 2}, {ImageProgram, imageFile, 1}}
	head, names := bytes.Buffer{}, ""
	for _, e := range entries {
		var entry [12]byte
		le.PutUint64(entry[:], uint64(e.inode))
		le.PutUint16(entry[8:], uint16(len(entry)*len(entries)+len(names)))
		entry[10] = byte(e.ftype)
		head.Write(entry[:])
		names += e.name
	}
	head.WriteString(names)
	copy(b[imageDirents*imageBlock:], head.Bytes())
	inode(imageRoot, unix.S_IFDIR|0o755, 2, head.Len(), imageDirents)
	inode(imageFile, unix.S_IFREG|0o755, 1, len(program), imageText)
	copy(b[imageText*imageBlock:], program)
	return b
}

// images tries whether the kernel mounts them.
func images() error {
	fs, err := unix.Fsopen("erofs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Join(err, unix.Close(fs))
	}
	return errors.Join(unix.Close(fs), unix.Close(control))
}

// An ImageDevice is a loop device on which images are mounted one after the other, read-only. See Images.
type ImageDevice struct {
	t    *testing.T
	at   string
	loop *os.File // while an image is mounted; the device has a number of its own
	path string
}

// NewImageDevice returns one whose images are mounted at an empty directory.
func NewImageDevice(t *testing.T, at string) *ImageDevice {
	t.Helper()
	return &ImageDevice{t: t, at: at}
}

// Mount mounts an image with a program, whose path it returns.
func (d *ImageDevice) Mount(program []byte) string {
	t := d.t
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(path, image(program), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	require.Eventually(t, func() bool { return d.attach(file) == nil }, time.Minute, 10*time.Millisecond)
	require.NoError(t, unix.Mount(d.path, d.at, "erofs", unix.MS_RDONLY, ""))
	t.Cleanup(d.end)
	return filepath.Join(d.at, ImageProgram)
}

// attach gives the device a file, which is a device that nobody uses the first time.
func (d *ImageDevice) attach(file *os.File) error {
	path := d.path
	if path == "" {
		control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer control.Close()
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return err
		}
		path = fmt.Sprintf("/dev/loop%d", n)
	}
	loop, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_FD, int(file.Fd())); err != nil {
		return errors.Join(err, loop.Close())
	}
	d.loop, d.path = loop, path
	return nil
}

// Unmount takes the image away, once nobody has a file of it open.
func (d *ImageDevice) Unmount() {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return unix.Unmount(d.at, 0) == nil }, time.Minute, 10*time.Millisecond)
	d.detach()
}

// end takes away what is there, whoever uses it.
func (d *ImageDevice) end() {
	if d.loop != nil {
		require.NoError(d.t, unix.Unmount(d.at, unix.MNT_DETACH))
		d.detach()
	}
}

func (d *ImageDevice) detach() {
	require.NoError(d.t, unix.IoctlSetInt(int(d.loop.Fd()), unix.LOOP_CLR_FD, 0))
	require.NoError(d.t, d.loop.Close())
	d.loop = nil
}
