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
// the dynamic symbol table, packed by xz, and calls add with these. Others wait for that.
func (l *loader) debugData(packed []byte, add func(elffile.Function) bool) error {
	b, free, err := unpack(packed, maxUnpackedBytes, l.stepAlone)
	defer free()
	if err != nil {
		return fmt.Errorf("unpack .gnu_debugdata: %w", err)
	}
	debug, err := elffile.New(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	debug.Pace(l.stepAlone)
	return debug.StaticFunctions(add)
}
