package symbol

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"path"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// debugDir is where distributions install debug files.
	debugDir = "/usr/lib/debug"
	// minBuildIDBytes of a build id are a directory and a name.
	minBuildIDBytes = 2
	// maxLinkBytes bounds .gnu_debuglink: a file name and a checksum.
	maxLinkBytes = 4 << 10
	// maxChecksumBytes is the largest debug file whose checksum is computed.
	maxChecksumBytes = 256 << 20
)

// findDebug looks for the separate debug file of a file; nil if there is none. In
// each root it tries
//
//	/usr/lib/debug/.build-id/NN/NNNN.debug, NNNNNN being the build id
//	DIR/LINK, DIR/.debug/LINK, /usr/lib/debug/DIR/LINK
//
// where DIR is the file's directory and LINK what .gnu_debuglink names. A debug file
// must have the build id of the file. For a file without one, the checksum of
// .gnu_debuglink must be that of the debug file.
func findDebug(src Source, f *elffile.File) (*elffile.File, Contents, error) {
	// A file that is damaged here has no debug file.
	id, _ := f.BuildID()
	link, sum, linked := debugLink(f)
	var paths []string
	if len(id) >= 2*minBuildIDBytes {
		paths = append(paths, debugDir+"/.build-id/"+id[:2]+"/"+id[2:]+".debug")
	}
	if file := src.Path(); linked && strings.HasPrefix(file, "/") {
		dir := path.Dir(path.Clean(file))
		paths = append(paths, path.Join(dir, link), path.Join(dir, ".debug", link), path.Join(debugDir, dir, link))
	}
	for root := range Root(numRoots) {
		for _, p := range paths {
			debug, contents, err := openDebug(src, root, p)
			if err != nil {
				continue
			}
			if id != "" && sameBuildID(debug, id) || id == "" && linked && hasChecksum(contents, debug.Size(), sum) {
				if stripped, err := debug.Stripped(); err == nil && !stripped {
					return debug, contents, nil
				}
			}
			contents.Close()
		}
	}
	return nil, nil, nil
}

func openDebug(src Source, root Root, p string) (*elffile.File, Contents, error) {
	contents, size, err := src.OpenPath(root, p)
	if err != nil {
		return nil, nil, err
	}
	f, err := elffile.New(contents, size)
	if err != nil {
		contents.Close()
		return nil, nil, err
	}
	return f, contents, nil
}

func sameBuildID(debug *elffile.File, id string) bool {
	got, err := debug.SectionBuildID()
	return err == nil && got == id
}

// debugLink reads .gnu_debuglink: the name of a file, NULs up to a multiple of 4
// bytes, and the file's CRC-32.
func debugLink(f *elffile.File) (name string, sum uint32, ok bool) {
	s, ok, err := f.Section(".gnu_debuglink")
	if err != nil || !ok || s.Size > maxLinkBytes {
		return "", 0, false
	}
	r, err := f.Contents(s, maxLinkBytes)
	if err != nil {
		return "", 0, false
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return "", 0, false
	}
	return parseDebugLink(b)
}

func parseDebugLink(b []byte) (name string, sum uint32, ok bool) {
	n := bytes.IndexByte(b, 0)
	at := (n + 1 + 3) &^ 3
	if n <= 0 || at+4 > len(b) || bytes.IndexByte(b[:n], '/') >= 0 || string(b[:n]) == "." || string(b[:n]) == ".." {
		return "", 0, false
	}
	return string(b[:n]), binary.LittleEndian.Uint32(b[at:]), true
}

// hasChecksum reports whether a file has a CRC-32, and may be read to find out.
func hasChecksum(r io.ReaderAt, size int64, sum uint32) bool {
	if size > maxChecksumBytes {
		return false
	}
	h := crc32.NewIEEE()
	n, err := io.Copy(h, io.NewSectionReader(r, 0, size))
	return err == nil && n == size && h.Sum32() == sum
}
