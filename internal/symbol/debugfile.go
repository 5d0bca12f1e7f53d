package symbol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// debugDir is where distributions install debug files.
	debugDir = "/usr/lib/debug"
	// minBuildIDBytes of a build id are a directory and a name.
	minBuildIDBytes = 2
	// maxLinkBytes bounds .gnu_debuglink: a file name and a checksum.
	maxLinkBytes = 4 << 10
	// maxChecksumBytes is the largest debug file whose checksum is computed, and what all take together that are
	// tried for a file.
	maxChecksumBytes = 256 << 20
	// checksumStep is how much is read of one before it is asked whether to go on.
	checksumStep = 64 << 10
)

// debugID tells the debug file of a file from others: it must have the file's build id; for a
// file without one, the checksum that .gnu_debuglink says.
type debugID struct {
	build  string // "": none
	linked bool   // there is .gnu_debuglink, which says
	link   string // the name of the debug file
	sum    uint32
	// hostDir is the DIR for which onHost has found none. It is that of the process for which the file was read first,
	// which may have it where nobody else has: below a mount of its own.
	hostDir string
}

// newDebugID returns nil if a file can have no debug file.
func newDebugID(f *elffile.File) *debugID {
	// A file that is damaged here has no debug file.
	d := &debugID{}
	d.build, _ = f.BuildID()
	d.link, d.sum, d.linked = debugLink(f)
	if d.build == "" && !d.linked {
		return nil
	}
	return d
}

// onHost looks for the debug file where only the host's administrator puts any, so that it
// holds for all processes:
//
//	/usr/lib/debug/.build-id/NN/NNNN.debug, NNNNNN being the build id
//	/usr/lib/debug/DIR/LINK
//
// DIR is the file's directory and LINK what .gnu_debuglink names. DIR itself is not looked
// into: a container can say that the file is in a directory of the host that it can write to.
//
// The error says that reading has to end. That the process has gone makes no difference there.
func (d *debugID) onHost(l *loader) (*elffile.File, Contents, error) {
	debug, contents, err := d.find(l, HostRoot, d.installed(l.src.Path()))
	if errors.Is(err, procfs.ErrNoProcess) {
		err = nil
	}
	return debug, contents, err
}

// forOwner looks for the debug file that was not found for all. Whatever is found, or not, holds for the Owner's
// container alone: so nobody has it looked for without end, or not found for others.
func (d *debugID) forOwner(l *loader) (debug *elffile.File, contents Contents, err error) {
	if d.elsewhere(l.src.Path()) {
		debug, contents, err = d.onHost(l)
	}
	if debug == nil && err == nil {
		debug, contents, err = d.inContainer(l)
	}
	return debug, contents, err
}

// inContainer looks for the debug file as the process sees it. In addition to the paths of
// onHost it tries
//
//	DIR/LINK, DIR/.debug/LINK
//
// The error says that the process has gone, or that reading has to end.
func (d *debugID) inContainer(l *loader) (*elffile.File, Contents, error) {
	file := l.src.Path()
	paths := d.installed(file)
	if dir := d.dir(file); dir != "" {
		paths = append(paths, path.Join(dir, d.link), path.Join(dir, ".debug", d.link))
	}
	return d.find(l, TargetRoot, paths)
}

// installed returns where a debug file of a package is.
func (d *debugID) installed(file string) (paths []string) {
	if len(d.build) >= 2*minBuildIDBytes {
		paths = append(paths, debugDir+"/.build-id/"+d.build[:2]+"/"+d.build[2:]+".debug")
	}
	if dir := d.dir(file); dir != "" {
		paths = append(paths, path.Join(debugDir, dir, d.link))
	}
	return paths
}

// dir returns the directory of a file that names its debug file; "" if it does not, or has no name.
func (d *debugID) dir(file string) string {
	if !d.linked || !path.IsAbs(file) {
		return ""
	}
	return path.Dir(path.Clean(file))
}

// elsewhere reports whether onHost looks for the debug file where it was not looked for yet, by where a file is.
func (d *debugID) elsewhere(file string) bool {
	dir := d.dir(file)
	return dir != "" && dir != d.hostDir
}

// find returns the first of some files that is the debug file; nil if none is.
func (d *debugID) find(l *loader, root Root, paths []string) (*elffile.File, Contents, error) {
	for _, p := range paths {
		debug, contents, err := openDebug(l.src, root, p)
		if errors.Is(err, procfs.ErrNoProcess) {
			return nil, nil, err
		}
		if err != nil {
			continue
		}
		matches, err := d.matches(l, debug, contents)
		if matches {
			if stripped, err := debug.Stripped(); err == nil && !stripped {
				return debug, contents, nil
			}
		}
		contents.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, nil
}

// matches reports whether a file is the debug file. The error says that reading has to end.
func (d *debugID) matches(l *loader, debug *elffile.File, contents Contents) (bool, error) {
	if d.build != "" {
		return sameBuildID(debug, d.build), nil
	}
	if debug.Size() > maxChecksumBytes-l.summed {
		return false, nil
	}
	l.summed += debug.Size()
	return hasChecksum(contents, debug.Size(), d.sum, l.step)
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

// hasChecksum reports whether a file has a CRC-32. The error is that of step, which is called as the file is
// read.
func hasChecksum(r io.ReaderAt, size int64, sum uint32, step func() error) (bool, error) {
	h := crc32.NewIEEE()
	from := io.NewSectionReader(r, 0, size)
	buffer := make([]byte, min(size, checksumStep))
	for left := size; left > 0; left -= int64(len(buffer)) {
		if err := step(); err != nil {
			return false, err
		}
		buffer = buffer[:min(left, checksumStep)]
		if _, err := io.ReadFull(from, buffer); err != nil {
			return false, nil //nolint:nilerr // what cannot be read is not the file
		}
		h.Write(buffer)
	}
	return h.Sum32() == sum, nil
}
