package procfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxMappings is the number of lines of /proc/PID/maps that are read. The
// kernel's own default limit, vm.max_map_count, is 65,530.
const MaxMappings = 1 << 18

// maxMapsBytes bounds what is read of one maps file, where the kernel can only tell of mappings by that. It shows a path
// in full, and directories can be nested far beyond PATH_MAX: with a path of
// megabytes, few mappings make a file that takes minutes.
const maxMapsBytes = 64 << 20

// maxMapsLine holds a line with a path of PATH_MAX bytes. A longer one, which
// takes many escaped newlines in a path, is kept without its path.
const maxMapsLine = 8 << 10

// ErrTooManyMappings says that a process has more than MaxMappings mappings, or
// paths of absurd length; the mappings before the bound have been delivered.
var ErrTooManyMappings = errors.New("too many mappings")

// Perms are the permissions of a mapping.
type Perms uint8

// The permission bits.
const (
	PermRead Perms = 1 << iota
	PermWrite
	PermExec
	PermShared
)

// Mapping is what a line of /proc/PID/maps says: [Start, Limit) shows the file from Offset on.
type Mapping struct {
	Start, Limit uint64 // addresses
	Offset       uint64 // in the file, bytes
	Dev          uint64 // as unix.Mkdev; need not equal st_dev (btrfs, overlayfs)
	Inode        uint64 // 0: no file
	Perms        Perms
	Path         string // raw bytes, "[heap]" and the like included; see the proc manual page
}

// Mappings yields the mappings of a process in address order. It reads while
// it yields, so a process that changes its mappings meanwhile may show some
// twice or not at all. An error ends the sequence.
func (f FS) Mappings(pid int) iter.Seq2[Mapping, error] {
	return (&MappingReader{}).Mappings(f, pid)
}

// A MappingReader reads the mappings of one process after the other, with the same buffer. It is for
// one goroutine.
type MappingReader struct {
	lines *bufio.Reader
	name  []byte
}

// Mappings is FS.Mappings.
func (b *MappingReader) Mappings(f FS, pid int) iter.Seq2[Mapping, error] {
	return func(yield func(Mapping, error) bool) {
		file, err := f.open(pid, "maps")
		if err != nil {
			yield(Mapping{}, err)
			return
		}
		defer file.Close()
		if !b.query(file, yield) {
			b.read(file, yield)
		}
	}
}

func (b *MappingReader) read(r io.Reader, yield func(Mapping, error) bool) {
	limited := &io.LimitedReader{R: r, N: maxMapsBytes}
	if b.lines == nil {
		b.lines = bufio.NewReaderSize(nil, maxMapsLine)
	}
	br := b.lines
	br.Reset(limited)
	defer br.Reset(nil)
	var prev Mapping
	for n := 0; ; n++ {
		line, cut, err := readLine(br)
		if errors.Is(err, io.EOF) && limited.N == 0 {
			yield(Mapping{}, ErrTooManyMappings)
			return
		}
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return
		}
		if err != nil && !errors.Is(err, io.EOF) {
			yield(Mapping{}, fmt.Errorf("read mappings: %w", gone(err)))
			return
		}
		if n == MaxMappings {
			yield(Mapping{}, ErrTooManyMappings)
			return
		}
		m, perr := parseMapping(line, cut, prev.Path)
		if perr != nil {
			yield(Mapping{}, fmt.Errorf("parse mapping %d: %w", n, perr))
			return
		}
		if !yield(m, nil) {
			return
		}
		prev = m
	}
}

// readLine returns the next line without its newline, valid until the next
// call. cut says that it did not fit the buffer; the rest has been skipped.
func readLine(br *bufio.Reader) (line []byte, cut bool, err error) {
	line, err = br.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		// ReadSlice reuses the buffer: keep the head before skipping the tail.
		line, cut = bytes.Clone(line), true
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = br.ReadSlice('\n')
		}
	}
	return bytes.TrimSuffix(line, []byte("\n")), cut, err
}

// parseMapping parses
//
//	start-limit perms offset major:minor inode    path
//
// prevPath is the path of the line before: the segments of a library follow each
// other, so its string is used again.
func parseMapping(line []byte, cut bool, prevPath string) (Mapping, error) {
	var m Mapping
	p := fields{line: line}
	m.Start = p.number(16, '-')
	m.Limit = p.number(16, ' ')
	perms := p.word(4)
	m.Offset = p.number(16, ' ')
	major := p.number(16, ':')
	minor := p.number(16, ' ')
	m.Inode = p.number(10, ' ')
	if p.err != nil {
		return Mapping{}, p.err
	}
	if m.Limit <= m.Start {
		return Mapping{}, &FormatError{Msg: "mapping ends before it starts", Val: string(line[:p.off])}
	}
	m.Perms = parsePerms(perms)
	m.Dev = mkdev(major, minor)
	if cut {
		return m, nil
	}
	path := bytes.TrimLeft(line[p.off:], " ")
	if bytes.Contains(path, []byte(`\012`)) { // the kernel's only escape
		path = bytes.ReplaceAll(path, []byte(`\012`), []byte("\n"))
	}
	m.Path = mappedPath(path, m.Inode != 0, prevPath)
	return m, nil
}

func parsePerms(s []byte) Perms {
	var p Perms
	for i, bit := range []Perms{PermRead, PermWrite, PermExec} {
		if s[i] != '-' {
			p |= bit
		}
	}
	if s[3] == 's' {
		p |= PermShared
	}
	return p
}

// mkdev is glibc's makedev, the encoding of st_dev.
func mkdev(major, minor uint64) uint64 {
	return (major&0xfff)<<8 | (major&^0xfff)<<32 | minor&0xff | (minor&^0xff)<<12
}

// mappedPath takes off " (deleted)", of a file that has no name any more. A file may really be
// named so: whoever opens a file by its path compares the inode.
func mappedPath(b []byte, isFile bool, prevPath string) string {
	if isFile {
		b = bytes.TrimSuffix(b, []byte(" (deleted)"))
	}
	if string(b) == prevPath {
		return prevPath
	}
	return string(b)
}
