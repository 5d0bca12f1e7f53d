package procfs

// FileID identifies the contents of a file. It is comparable. Nothing in it can be set by
// the file's owner: a modification time can, and is restored by whatever keeps time stamps
// (cp -p, rsync, reproducible builds), so that it says nothing about the contents.
type FileID struct {
	Dev, Inode uint64
	CtimeNs    int64 // when contents or attributes changed last
	Size       int64
}
