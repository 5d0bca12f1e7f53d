package golabels

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	infoSection = ".go.buildinfo"
	// infoMagic and the rest of the format are in Go's debug/buildinfo.
	infoMagic       = "\xff Go buildinf:"
	infoFlags       = 15 // offset of a byte
	infoFlagInline  = 2  // strings follow the header, as since Go 1.18
	infoHeaderBytes = 32
	maxVersionBytes = 128
)

// readVersion returns the version of Go that a program states.
func readVersion(f *elffile.File) (string, error) {
	s, ok, err := f.Section(infoSection)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", ErrNotGo
	}
	// The length of the version is a varint: one byte, or two.
	b := make([]byte, min(s.Size, infoHeaderBytes+2+maxVersionBytes))
	if len(b) < infoHeaderBytes {
		return "", ErrNotGo
	}
	if err := f.ReadVaddr(b, s.Addr); err != nil {
		return "", fmt.Errorf("read %s: %w", infoSection, err)
	}
	if string(b[:len(infoMagic)]) != infoMagic {
		return "", ErrNotGo
	}
	if b[infoFlags]&infoFlagInline == 0 {
		return "", fmt.Errorf("%w: built by a Go before 1.18", ErrVersion)
	}
	n, used := binary.Uvarint(b[infoHeaderBytes:])
	text := b[infoHeaderBytes:]
	if used <= 0 || n > maxVersionBytes || n > uint64(len(text)-used) {
		return "", &elffile.FormatError{Off: s.Offset, Msg: "length of the version of Go", Val: n}
	}
	return string(text[used : used+int(n)]), nil
}

var releasePattern = regexp.MustCompile(`^go1\.(\d{1,3})(\.\d{1,4})?( X:[\w,]+)?$`)

// minor returns the N of a release go1.N or go1.N.P. ok is false for anything
// else: a candidate or a modified toolchain may have another runtime.
func minor(version string) (n int, ok bool) {
	m := releasePattern.FindStringSubmatch(version)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}
