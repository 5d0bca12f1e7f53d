package procfs

// FileID identifies the contents of a file. It is comparable.
type FileID struct {
	Dev, Inode uint64
	MtimeNs    int64
	Size       int64
}
