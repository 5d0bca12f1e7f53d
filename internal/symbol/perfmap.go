package symbol

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxMapFileBytes of a perf map are read in all, and then in each rereadGap.
	maxMapFileBytes = 64 << 20
	// maxMapBytes bounds the memory for the functions of one process.
	maxMapBytes = 8 << 20
	// probeBytes at both ends of what was read of a map tell whether it is still that.
	probeBytes = 256
	// rereadGap is the least time between two readings of a map from its beginning,
	// which one that only grows needs once, and until more of a large one is read.
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
	from, read int64         // where what was parsed begins and ends in the file: whole lines
	limit      int64         // up to where it may be read
	head, tail []byte        // the first and the last bytes of what was parsed; nil if they are not known
	skipping   bool          // what comes next belongs to a line that was parsed, or whose beginning was not read
	reread     time.Time     // when it was last read from its beginning, or its limit was raised
}

func newPerfMap(maxBytes int) *perfMap {
	return &perfMap{functions: &ranges{}, maxBytes: maxBytes, complete: true, limit: maxMapFileBytes}
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
	due := m.reread.IsZero() || now.Sub(m.reread) >= rereadGap
	switch {
	case file.ID == m.id:
		return m, nil
	case file.ID.Dev != m.id.Dev || file.ID.Inode != m.id.Inode || file.ID.Size < m.read || !m.continues(file):
		if !due {
			return m, nil
		}
		m = m.anew(file.ID.Size, now)
	case due && file.ID.Size > m.limit:
		m = m.further(file.ID.Size, now)
	}
	updated := *m
	updated.id = file.ID
	err := updated.append(file, room, added)
	if updated.late || err != nil || file.ID.Size > updated.limit {
		updated.id.Size = -1 // so that it is looked at again, though it stays as it is
	}
	return &updated, err
}

// anew returns a map of which nothing is read yet. Of a large file the last part is read: what comes later replaces
// what came before.
func (m *perfMap) anew(size int64, now time.Time) *perfMap {
	n := newPerfMap(m.maxBytes)
	n.reread = now
	if size > maxMapFileBytes {
		n.from = size - maxMapFileBytes/2
		n.read, n.limit = n.from, n.from+maxMapFileBytes
		n.skipping, n.complete = true, false
	}
	return n
}

// further returns a map that may be read on, beyond what could be read before. If that left out too much, nothing
// holds that is known: what was left out may have replaced it.
func (m *perfMap) further(size int64, now time.Time) *perfMap {
	if size-m.read > maxMapFileBytes/2 {
		return m.anew(size, now)
	}
	n := *m
	n.limit, n.reread = m.read+maxMapFileBytes, now
	return &n
}

// continues reports whether what was read is still there.
func (m *perfMap) continues(file MapFile) bool {
	return same(file, m.from, m.head) && same(file, m.read-int64(len(m.tail)), m.tail)
}

func same(r io.ReaderAt, off int64, want []byte) bool {
	got := make([]byte, len(want))
	n, _ := r.ReadAt(got, off)
	return n == len(want) && bytes.Equal(got, want)
}

// append reads what comes after the lines that were read, up to the last whole line.
func (m *perfMap) append(file MapFile, room *fileRoom, added *entries) error {
	end := min(file.ID.Size, m.limit)
	m.late = false
	m.complete = m.complete && end == file.ID.Size
	if m.read >= end && m.head != nil {
		return nil
	}
	err := m.parse(bufio.NewReaderSize(io.NewSectionReader(file, m.read, end-m.read), maxMapLine), room, added)
	return cmp.Or(err, m.probe(file))
}

// probe keeps both ends of what was parsed.
func (m *perfMap) probe(file MapFile) error {
	n := min(m.read-m.from, probeBytes)
	head, tail := make([]byte, n), make([]byte, n)
	m.head, m.tail = nil, nil
	if _, err := file.ReadAt(head, m.from); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if _, err := file.ReadAt(tail, m.read-n); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	m.head, m.tail = head, tail
	return nil
}

// parse adds the functions of whole lines, until there is no room for more.
func (m *perfMap) parse(lines *bufio.Reader, room *fileRoom, added *entries) error {
	for at := m.read; ; {
		if m.late = !room.has(added.bytes()); m.late {
			return nil
		}
		line, err := lines.ReadSlice('\n')
		at += int64(len(line))
		if errors.Is(err, io.EOF) {
			return nil // the rest is still being written
		}
		long := errors.Is(err, bufio.ErrBufferFull) // its beginning tells
		if err != nil && !long {
			return err
		}
		if m.skipping {
			m.skipping, m.read = long, at
			continue
		}
		start, size, name, ok := parseMapLine(bytes.TrimSuffix(line, []byte("\n")))
		fits := !ok || added.add(start, uint64(size), name, 2*m.maxBytes)
		if m.late = !fits && len(added.list) > 0; m.late {
			return nil // it is read on when these are merged
		}
		m.complete = m.complete && fits && (ok || !long)
		m.skipping, m.read = long, at
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
