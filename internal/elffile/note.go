package elffile

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

const (
	// maxNoteBytes bounds what is read of one PT_NOTE segment.
	maxNoteBytes = 16 << 10

	// maxBuildIDBytes bounds a GNU build id; SHA-1 has 20 bytes.
	maxBuildIDBytes = 64

	// maxGoBuildIDBytes bounds a Go build id; they have about 83 bytes.
	maxGoBuildIDBytes = 256

	noteGNUBuildID = 3 // NT_GNU_BUILD_ID
	noteGoBuildID  = 4 // cmd/internal/buildid
)

// BuildID returns the GNU build id in lower-case hex, or "" when the file has
// none.
func (f *File) BuildID() (string, error) {
	id, err := f.note("GNU\x00", noteGNUBuildID, maxBuildIDBytes)
	return hex.EncodeToString(id), err
}

// SectionBuildID is BuildID by section headers: for files with nothing but debug
// information, whose program headers say where notes were in the file that they
// were taken from.
func (f *File) SectionBuildID() (string, error) {
	s, ok, err := f.Section(".note.gnu.build-id")
	if err != nil || !ok || s.Type != elf.SHT_NOTE {
		return "", err
	}
	b := make([]byte, min(s.Size, maxNoteBytes))
	if err := f.read(b, s.Offset); err != nil {
		return "", fmt.Errorf("read notes: %w", err)
	}
	return NotesBuildID(b), nil
}

// NotesBuildID returns the GNU build id among notes, in lower-case hex; "" if there is none.
func NotesBuildID(notes []byte) string {
	id, ok := findNote(notes, 4, "GNU\x00", noteGNUBuildID)
	if !ok || len(id) > maxBuildIDBytes {
		return ""
	}
	return hex.EncodeToString(id)
}

// GoBuildID returns the build id that the Go linker wrote, or "" when the file
// has none.
func (f *File) GoBuildID() (string, error) {
	id, err := f.note("Go\x00\x00", noteGoBuildID, maxGoBuildIDBytes)
	return string(id), err
}

// note returns the descriptor of the first note of a name and type.
func (f *File) note(name string, typ uint32, maxBytes int) ([]byte, error) {
	for _, s := range f.segments {
		if s.Type != elf.PT_NOTE || s.Filesz == 0 {
			continue
		}
		b := make([]byte, min(s.Filesz, maxNoteBytes))
		if err := f.read(b, s.Offset); err != nil {
			return nil, fmt.Errorf("read notes: %w", err)
		}
		desc, ok := findNote(b, s.Align, name, typ)
		if !ok {
			continue
		}
		if len(desc) == 0 || len(desc) > maxBytes {
			return nil, &FormatError{s.Offset, "length of build id in notes", len(desc)}
		}
		return desc, nil
	}
	return nil, nil
}

// findNote walks notes: {namesz, descsz, type} as u32, the name and the
// descriptor, each padded to the alignment of the segment (4, or 8).
func findNote(b []byte, align uint64, name string, typ uint32) ([]byte, bool) {
	pad := uint64(3)
	if align == 8 {
		pad = 7
	}
	for len(b) >= 12 {
		nameBytes, descBytes := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
		desc := (12 + nameBytes + pad) &^ pad
		end := desc + descBytes
		if end > uint64(len(b)) {
			break
		}
		if binary.LittleEndian.Uint32(b[8:]) == typ && nameBytes == uint64(len(name)) && string(b[12:12+nameBytes]) == name {
			return b[desc:end], true
		}
		b = b[min((end+pad)&^pad, uint64(len(b))):]
	}
	return nil, false
}
