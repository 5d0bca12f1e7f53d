package elffile

// Stripped reports whether the file has no symbol table besides the dynamic one.
func (f *File) Stripped() (bool, error) {
	_, ok, err := f.symtab()
	return !ok, err
}
