package symbol

import "io"

// Contents is an open file.
type Contents interface {
	io.ReaderAt
	io.Closer
}

// Root says how a path is meant.
type Root uint8

// The roots.
const (
	TargetRoot Root = iota // as the process sees it, whose container shows what it likes
	HostRoot               // as we see it
)

// Source is an ELF file whose functions are asked for. Open and OpenPath may block.
type Source interface {
	// Open opens the file; whoever calls it closes it.
	Open() (contents Contents, size int64, err error)
	// Owner tells who has the file read; it reads nothing.
	Owner() Owner
	// Path is where the file is in TargetRoot; "" if it has no name there.
	Path() string
	// OpenPath opens another file, by an absolute path. It must neither wait for
	// what is not a regular file nor be led out of the root. TargetRoot is that of a
	// process of the Owner, or else the error is procfs.ErrNoProcess.
	OpenPath(root Root, path string) (contents Contents, size int64, err error)
}
