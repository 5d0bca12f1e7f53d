package symbol

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// maxPackedBytes and maxUnpackedBytes bound .gnu_debugdata. Those of the largest
	// libraries have some megabytes.
	maxPackedBytes   = 16 << 20
	maxUnpackedBytes = 32 << 20
)

// errNoRoom says that other files that are being read take what memory there is for that.
var errNoRoom = errors.New("other files that are being read leave no room")

// packedData reads .gnu_debugdata; nil if there is none.
func packedData(f *elffile.File, room *fileRoom) ([]byte, error) {
	s, ok, err := f.Section(".gnu_debugdata")
	if err != nil || !ok {
		return nil, err
	}
	most := min(s.Size, maxPackedBytes)
	if s.Flags&elf.SHF_COMPRESSED != 0 { // it never is, and so may become larger
		most = maxPackedBytes
	}
	if !room.has(int(most)) {
		return nil, errNoRoom
	}
	r, err := f.Contents(s, int64(most))
	if err != nil {
		return nil, fmt.Errorf("read .gnu_debugdata: %w", err)
	}
	packed, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read .gnu_debugdata: %w", err)
	}
	return packed, nil
}

// debugData unpacks .gnu_debugdata, an ELF file with the functions that are not in
// the dynamic symbol table, packed by xz.
func debugData(packed []byte) (*elffile.File, error) {
	b, err := unpack(bytes.NewReader(packed), maxUnpackedBytes)
	if err != nil {
		return nil, fmt.Errorf("unpack .gnu_debugdata: %w", err)
	}
	return elffile.New(bytes.NewReader(b), int64(len(b)))
}

// readAtMost reads all of r, or returns an error if that is more than most bytes.
func readAtMost(r io.Reader, most int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(b) > most {
		err = &elffile.FormatError{Msg: "unpacked bytes", Val: len(b)}
	}
	return b, err
}
