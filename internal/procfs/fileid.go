package procfs

// FileID identifies the contents of a file. It is comparable. Nothing in it can be set by
// the file's owner: a modification time can, and is restored by whatever keeps time stamps
// (cp -p, rsync, reproducible builds), so that it says nothing about the contents.
type FileID struct {
	Dev, Inode uint64
	CtimeNs    int64 // when contents or attributes changed last
	Size       int64
	// Mount is 0, but for a file of a read-only image (squashfs, EROFS and the like). There who has made the image has
	// chosen inode and times, and the image that is mounted next may have the same ones, with the same device number.
	// So it is the id of the mount that shows the file. Linux gives it to no other mount from 6.8 on; before that it has
	// recurs.
	Mount uint64
}

// recurs is in a FileID.Mount that another mount may have later. Ids that Linux gives once do not come so far.
const recurs = 1 << 63

// OfImage reports whether a file is one of a read-only image: to the kernel, one of another image may be the same later.
func (id FileID) OfImage() bool { return id.Mount != 0 }

// MayRecur reports whether another file may have the same id when no process maps this one any more.
func (id FileID) MayRecur() bool { return id.Mount&recurs != 0 }
