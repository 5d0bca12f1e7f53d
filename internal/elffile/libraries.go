package elffile

import "fmt"

const (
	// maxLibraries bounds the libraries that are returned of one file.
	maxLibraries = 1024
	// maxLibraryNameBytes bounds their names: NAME_MAX, and a path before it.
	maxLibraryNameBytes = 512
)

// Libraries returns the name that a library is asked for by (DT_SONAME), "" if it
// has none, and the names of those that the file asks for (DT_NEEDED). A file
// without a dynamic section has neither.
func (f *File) Libraries() (soname string, needed []string, err error) {
	d, err := f.dyn()
	if err != nil || d.strtab == 0 {
		return "", nil, err
	}
	if d.named {
		if soname, err = f.libraryName(d, d.soname); err != nil {
			return "", nil, err
		}
	}
	for _, off := range d.needed {
		name, err := f.libraryName(d, off)
		if err != nil {
			return "", nil, err
		}
		needed = append(needed, name)
	}
	return soname, needed, nil
}

// libraryName reads a name in DT_STRTAB.
func (f *File) libraryName(d *dynamic, offset uint64) (string, error) {
	if offset >= d.strsz {
		return "", &FormatError{d.strtab, "library name outside of the string table at", offset}
	}
	n := min(d.strsz-offset, maxLibraryNameBytes)
	off, avail, ok := f.fileRange(d.strtab + offset)
	if !ok {
		return "", &FormatError{d.strtab, "library name outside of the file's segments at", offset}
	}
	b := make([]byte, min(n, avail))
	if err := f.read(b, off); err != nil {
		return "", fmt.Errorf("read library name: %w", err)
	}
	return string(beforeNUL(b)), nil
}
