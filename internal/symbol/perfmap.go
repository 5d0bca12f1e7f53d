package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxMapFileBytes of a perf map are read in all.
	maxMapFileBytes = 64 << 20
	// maxMapBytes bounds the memory for the functions of one process.
	maxMapBytes = 8 << 20
	// probeBytes at both ends of what was read of a map tell whether it is still that.
	probeBytes = 256
	// rereadGap is the least time between two readings of a map from its beginning,
	// which one that only grows needs once.
	rereadGap = time.Minute
)

// MapFile is an open perf map.
type MapFile struct {
	Contents
	ID procfs.FileID
}

// perfMap is the functions of generated code of one process, as it has written them
// down in /tmp/perf-PID.map. Programs append to the file while they run; some write it
// anew now and then.
type perfMap struct {
	functions *ranges
	maxBytes  int  // of these
	complete  bool // nothing was left out
	late      bool // there was no room to read on

	id         procfs.FileID // when it was read last
	read       int64         // bytes that were parsed: whole lines
	head, tail []byte        // the first and the last of them
	skipping   bool          // what comes next belongs to a line that is too long
	reread     time.Time     // when it was last read from its beginning
}

func newPerfMap(maxBytes int) *perfMap {
	return &perfMap{functions: &ranges{}, maxBytes: maxBytes, complete: true}
}

// update returns the map with what was appended to the file since, as far as there is room for
// that. The maps themselves do not change. It closes the file.
func (m *perfMap) update(file MapFile, now time.Time, room *fileRoom) (*perfMap, error) {
	var added entries
	updated, err := m.readOn(file, now, room, &added)
	file.Close() // which may take for ever
	if len(added.list) > 0 {
		room.alone(func() {
			merged, complete := updated.functions.merge(&added, m.maxBytes)
			updated.functions = merged
			updated.complete = updated.complete && complete
		})
	}
	return updated, err
}

// readOn reads what was appended to the file, and returns the map without that.
func (m *perfMap) readOn(file MapFile, now time.Time, room *fileRoom, added *entries) (*perfMap, error) {
	switch {
	case file.ID == m.id:
		return m, nil
	case file.ID.Dev != m.id.Dev || file.ID.Inode != m.id.Inode || file.ID.Size < m.read || !m.continues(file):
		if !m.reread.IsZero() && now.Sub(m.reread) < rereadGap {
			return m, nil
		}
		m = newPerfMap(m.maxBytes)
		m.reread = now
	}
	updated := *m
	updated.id = file.ID
	err := updated.append(file, room, added)
	if updated.late {
		updated.id.Size = updated.read // so that it is looked at again, though it stays as it is
	}
	return &updated, err
}

// continues reports whether what was read is still there.
func (m *perfMap) continues(file MapFile) bool {
	return same(file, 0, m.head) && same(file, m.read-int64(len(m.tail)), m.tail)
}

func same(r io.ReaderAt, off int64, want []byte) bool {
	got := make([]byte, len(want))
	n, _ := r.ReadAt(got, off)
	return n == len(want) && bytes.Equal(got, want)
}

// append reads what comes after the lines that were read, up to the last whole line.
func (m *perfMap) append(file MapFile, room *fileRoom, added *entries) error {
	limit := min(file.ID.Size, maxMapFileBytes)
	m.late = false
	if m.read >= limit {
		m.complete = m.complete && m.read >= file.ID.Size
		return nil
	}
	err := m.parse(bufio.NewReaderSize(io.NewSectionReader(file, m.read, limit-m.read), maxMapLine), room, added)
	m.complete = m.complete && limit == file.ID.Size
	m.head, m.tail = make([]byte, min(m.read, probeBytes)), make([]byte, min(m.read, probeBytes))
	if _, err := file.ReadAt(m.head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := file.ReadAt(m.tail, m.read-int64(len(m.tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return err
}

// parse adds the functions of whole lines, until there is no room for more.
func (m *perfMap) parse(lines *bufio.Reader, room *fileRoom, added *entries) error {
	for at := m.read; ; {
		if m.late = !room.has(added.bytes()); m.late {
			return nil
		}
		line, err := lines.ReadSlice('\n')
		at += int64(len(line))
		if errors.Is(err, bufio.ErrBufferFull) {
			m.skipping, m.complete, m.read = true, false, at
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil // the rest is still being written
		}
		if err != nil {
			return err
		}
		skip := m.skipping
		m.skipping, m.read = false, at
		if skip {
			continue
		}
		start, size, name, ok := parseMapLine(bytes.TrimSuffix(line, []byte("\n")))
		if ok && !added.add(start, uint64(size), name, 2*m.maxBytes) {
			m.complete = false
			return nil
		}
	}
}

// lookup appends what is at an address.
func (m *perfMap) lookup(to []Frame, addr uint64, otherwise Language) ([]Frame, Language) {
	i := m.functions.find(addr)
	if i < 0 {
		return to, otherwise
	}
	name := strings.ToValidUTF8(string(m.functions.nameOf(i)), "\uFFFD")
	runtime.KeepAlive(m.functions)
	frame, language := mapFrame(name, otherwise)
	return append(to, frame), language
}
