//go:build linux && (amd64 || arm64)

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// ErrNoFileKey says that the kernel does not tell what a file is to it.
var ErrNoFileKey = errors.New("the kernel does not name the file")

// nameTries is how often a file is named anew: the tree of mappings may change while it is read.
const nameTries = 8

// fileRows is a table that a file has.
type fileRows struct {
	table record.TableID
	texts []record.FileText
}

// NameFile returns the key by which the kernel tells an open regular file from others when
// a process maps it: that of the file itself, where stat(2) names what a container's or a
// subvolume's file system makes of it. It may block on the file's file system. Files that a server has, a
// program's or another host's, have none: to map one may wait for it, with all memory of this process locked
// meanwhile. Nor have files of an overlayfs that was mounted in a user namespace: what is below it may be anybody's FUSE.
func (s *Sampler) NameFile(f *os.File) (record.FileKey, error) {
	if s.objs.NameFile == nil {
		return record.FileKey{}, fmt.Errorf("name file: %w", ErrNoFileKey)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return record.FileKey{}, fmt.Errorf("name file: %w", err)
	}
	var mem []byte
	failed := raw.Control(func(fd uintptr) {
		if err = s.mayMap(fd); err != nil {
			return
		}
		mem, err = unix.Mmap(int(fd), 0, 1, unix.PROT_READ, unix.MAP_PRIVATE) // nothing of it is read
	})
	if err := errors.Join(failed, err); err != nil {
		return record.FileKey{}, fmt.Errorf("name file: %w", err)
	}
	defer func() { _ = unix.Munmap(mem) }()
	for range nameTries {
		named := record.NamedFile{Addr: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))}
		found, err := s.ask(&named)
		if err != nil {
			return record.FileKey{}, fmt.Errorf("name file: %w", err)
		}
		if found {
			return named.Key, nil
		}
	}
	return record.FileKey{}, fmt.Errorf("name file: %w", ErrNoFileKey)
}

// mayMap returns an error where to map an open file may wait for who has mounted its file system.
func (s *Sampler) mayMap(fd uintptr) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(fd), &st); err != nil {
		return err
	}
	switch {
	case asksServer(st.Type):
		return ErrNoFileKey
	case st.Type == unix.OVERLAYFS_SUPER_MAGIC:
		if host, err := s.ask(&record.NamedFile{FD: uint32(fd)}); err != nil || !host {
			return cmp.Or(err, ErrNoFileKey)
		}
	}
	return nil
}

// gfs2Magic is GFS2_MAGIC of linux/gfs2_ondisk.h.
const gfs2Magic = 0x01161970

// asksServer reports whether a file system, by its magic number, has its files from a server or shares them in a
// cluster, of which some ask when a file is mapped: fuse_file_mmap (fs/fuse/file.c), nfs_file_mmap (fs/nfs/file.c),
// cifs_file_mmap (fs/smb/client/file.c), coda_file_mmap (fs/coda/file.c), gfs2_mmap (fs/gfs2/file.c), ocfs2_mmap
// (fs/ocfs2/mmap.c). The others are here because they may, in one release or another.
func asksServer(magic int64) bool {
	switch magic {
	case unix.FUSE_SUPER_MAGIC, unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC,
		unix.CODA_SUPER_MAGIC, gfs2Magic, unix.OCFS2_SUPER_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.V9FS_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.NCP_SUPER_MAGIC:
		return true
	}
	return false
}

// ask has a question about a file answered in place. It does not wait for the file.
func (s *Sampler) ask(named *record.NamedFile) (yes bool, err error) {
	s.namedMu.Lock()
	defer s.namedMu.Unlock()
	if err := s.objs.Named.Put(uint32(0), named); err != nil {
		return false, err
	}
	answer, err := s.objs.NameFile.Run(&ebpf.RunOptions{})
	if err != nil || answer == 0 {
		return false, err
	}
	return true, s.objs.Named.Lookup(uint32(0), named)
}

// SetFileRows has stacks of processes that no list of mappings is known of walked by a
// table wherever they map a file; the key without a file stands for the vDSO. What is said
// last of a file holds, until that table is removed, or RemoveFileRows; then what was said before. At most
// MaxFileTexts are taken.
func (s *Sampler) SetFileRows(file record.FileKey, id record.TableID, texts []record.FileText) error {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	table, ok := s.tables.slots[id]
	if !ok {
		return fmt.Errorf("set rows of a file: no table %d", id)
	}
	rows := fileRows{id, slices.Clone(texts[:min(len(texts), record.MaxFileTexts)])}
	if err := s.putFileRows(file, rows); err != nil {
		return fmt.Errorf("set rows of a file: %w", err)
	}
	known := slices.DeleteFunc(s.tables.files[file], func(r fileRows) bool { return r.table == id })
	s.tables.files[file] = append(known, rows)
	if !slices.Contains(table.files, file) {
		table.files = append(table.files, file)
		s.setTable(id, table)
	}
	return nil
}

func (s *Sampler) putFileRows(file record.FileKey, rows fileRows) error {
	table := s.tables.slots[rows.table]
	known := record.KnownRows{Table: rows.table, Slot: table.slot, Blocks: uint32(table.blocks)}
	copy(known.Texts[:], rows.texts)
	sealRows(&file, &known)
	return s.objs.FileRows.Put(&file, &known)
}

// RemoveFileRows takes back what SetFileRows said of a file and a table. Unknown ones are no error.
func (s *Sampler) RemoveFileRows(file record.FileKey, id record.TableID) error {
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	table, ok := s.tables.slots[id]
	i := slices.Index(table.files, file)
	if !ok || i < 0 {
		return nil
	}
	if err := s.forgetFileRows(file, id); err != nil {
		return fmt.Errorf("remove rows of a file: %w", err)
	}
	table.files = slices.Delete(table.files, i, i+1)
	s.setTable(id, table)
	return nil
}

// forgetFileRows takes back that a file has a table. Another one that it has holds again.
func (s *Sampler) forgetFileRows(file record.FileKey, id record.TableID) error {
	known := s.tables.files[file]
	held := len(known) > 0 && known[len(known)-1].table == id
	known = slices.DeleteFunc(known, func(r fileRows) bool { return r.table == id })
	if len(known) > 0 {
		s.tables.files[file] = known
		if held {
			return s.putFileRows(file, known[len(known)-1])
		}
		return nil
	}
	delete(s.tables.files, file)
	if err := s.objs.FileRows.Delete(&file); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}
