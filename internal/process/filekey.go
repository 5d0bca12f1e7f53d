package process

// FileKey stands for the contents of a file, as the kernel tells files apart that processes
// map. What containers show of a file of their image is one file to it, where stat(2) has
// many. It is only compared; zero is none.
type FileKey struct {
	Inode, Size      uint64
	ChangedSec       int64
	ChangedNsec, Dev uint32
}
