package symbol

import (
	"bytes"
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

// debugData unpacks .gnu_debugdata, an ELF file with the functions that are not in
// the dynamic symbol table, packed by xz; nil if there is none.
func debugData(f *elffile.File) (*elffile.File, error) {
	s, ok, err := f.Section(".gnu_debugdata")
	if err != nil || !ok {
		return nil, err
	}
	packed, err := f.Contents(s, maxPackedBytes)
	if err != nil {
		return nil, fmt.Errorf("read .gnu_debugdata: %w", err)
	}
	b, err := unpack(packed, maxUnpackedBytes)
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
