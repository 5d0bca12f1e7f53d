//go:build linux

package executable

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// vdsoPath names the mapping of the code that the kernel gives to each process.
	vdsoPath = "[vdso]"
	// maxVDSOBytes is many times what kernels have.
	maxVDSOBytes = 1 << 20
)

// vdso is the kernel's code in each process. All 64-bit processes have the same,
// so ours stands for all: that of another process could be anything by now.
type vdso struct {
	image []byte
	file  *File
}

// loadVDSO reads ours. Without one, as on kernels that were built so, there is nothing.
func loadVDSO(opts *fileOptions) *vdso {
	image, err := ownVDSO()
	if err != nil {
		return nil
	}
	v := &vdso{image: image}
	v.file = &File{key: procfs.FileID{Size: int64(len(image))}, path: vdsoPath, opts: opts, vdso: v}
	if _, err := v.file.load(Owner{}, nil); err != nil {
		return nil
	}
	return v
}

func ownVDSO() ([]byte, error) {
	fs, pid := procfs.FS{Root: "/proc"}, os.Getpid()
	for m, err := range fs.Mappings(pid) {
		switch {
		case err != nil:
			return nil, err
		case m.Path != vdsoPath || m.Inode != 0 || m.Limit-m.Start > maxVDSOBytes:
			continue
		}
		image := make([]byte, m.Limit-m.Start)
		err := procfs.Memory{PID: pid}.ReadAt(image, m.Start)
		return image, err
	}
	return nil, fmt.Errorf("find the vDSO: %w", os.ErrNotExist)
}

// of returns the file of a mapping that shows the vDSO, or nil; v may be nil.
func (v *vdso) of(m *procfs.Mapping) *File {
	if v == nil || m.Inode != 0 || m.Path != vdsoPath || m.Limit-m.Start != uint64(len(v.image)) {
		return nil
	}
	return v.file
}

// open makes a file of it: what reads files need not know that there is none.
func (v *vdso) open() (*Contents, int64, error) {
	fd, err := unix.MemfdCreate("vdso", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, 0, fmt.Errorf("open the vDSO: %w", err)
	}
	f := os.NewFile(uintptr(fd), vdsoPath)
	if _, err := f.Write(v.image); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open the vDSO: %w", err)
	}
	return &Contents{file: f}, int64(len(v.image)), nil
}
