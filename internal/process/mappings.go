//go:build linux

package process

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxExecMappings of one process are kept; of these, half can be generated code, which must
	// not crowd out the libraries of a program: what has no file, and mappings of one file beyond
	// maxFileMappings. Programs generate code in shared memory, too, a mapping for each page (.NET);
	// a library has a few.
	maxExecMappings      = 2048
	maxGeneratedMappings = maxExecMappings / 2
	maxFileMappings      = 64
	// maxPathBytes of the executable mappings of one process are kept; a path can have 8 KiB.
	maxPathBytes = 1 << 20
	// maxOpening is the CPU time for which one look opens files: a process may map many that take long each.
	maxOpening = 2 * time.Second
	// maxPlaces of a process's mappings of files are known at a time, of files with code, and of the
	// latest ones: the first mappings of a file come right before its code. A look that has to wait keeps them.
	maxPlaces    = 8 << 10
	latestPlaces = 1 << 10
	// vsyscallPath names what is no mapping of the process.
	vsyscallPath = "[vsyscall]"
	// damagedNumber is that of executable.File.FirstTime for files whose label sources cannot
	// be read; reader.explain takes those of the ABIs.
	damagedNumber = 31
	// runtimeNumber is that for files with a language runtime whose functions are not known.
	runtimeNumber = 30
	// severalNumber is that for files with the language runtime of a process that has others, too.
	severalNumber = 29
	// runtimeLineNumber is that for the line of the log about those of runtimeNumber.
	runtimeLineNumber = 28
)

// scratch holds the mappings of the process that a worker is reading.
type scratch struct {
	lines procfs.MappingReader
	files []procfs.Mapping // those that show files with code, without their paths
	exec  []procfs.Mapping // executable ones
	// around has the mappings of files between which those of exec without a file are, by their
	// numbers there, where both show the same file.
	around map[int]*executable.Around
	shown  map[deviceInode]int // mappings in exec, by file
	cut    bool
	// crowded says that there is nothing more to be had from giving way.
	crowded bool
	code    uint64 // bytes that are executable and not writable
	// contexts are the addresses of what may be a process context.
	contexts []uint64
}

// deviceInode is a file, as in a mapping.
type deviceInode struct{ dev, inode uint64 }

// read reads the mappings of a process.
func (s *scratch) read(fs procfs.FS, pid int) error {
	s.files, s.exec, s.contexts, s.cut, s.code = s.files[:0], s.exec[:0], s.contexts[:0], false, 0
	s.crowded = false
	clear(s.around)
	if s.shown == nil {
		s.shown = map[deviceInode]int{}
	}
	clear(s.shown)
	anonymous, generated, paths := 0, 0, 0
	var below procfs.Mapping // the last one of a file
	after, before := 0, 0    // where exec goes on behind it; anonymous ones before it
	for m, err := range s.lines.Mappings(fs, pid) {
		switch {
		case errors.Is(err, procfs.ErrTooManyMappings):
			s.cut, s.code = true, 0
			return nil
		case err != nil:
			return err
		}
		if m.Inode != 0 {
			place := m
			place.Path = "" // a path of several KiB for each mapping would add up
			s.place(&place)
			if anonymous > before && m.Dev == below.Dev && m.Inode == below.Inode {
				paths += s.surround(after, &executable.Around{Below: below, Above: place})
			}
			below, after, before = m, len(s.exec), anonymous
		}
		if m.Perms&procfs.PermExec == 0 {
			if processctx.IsMapping(&m) && len(s.contexts) < maxContextMappings {
				s.contexts = append(s.contexts, m.Start)
			}
			continue
		}
		if m.Perms&procfs.PermWrite == 0 && m.Path != vsyscallPath {
			s.code += m.Limit - m.Start
		}
		if m.Inode == 0 {
			if s.extend(m) {
				continue
			}
			anonymous++
		}
		file := deviceInode{m.Dev, m.Inode}
		isGenerated := m.Inode == 0 || s.shown[file] >= maxFileMappings
		if len(s.exec) == maxExecMappings || isGenerated && generated == maxGeneratedMappings || paths+len(m.Path) > maxPathBytes {
			s.cut = true
			continue
		}
		if isGenerated {
			generated++
		}
		paths += len(m.Path)
		s.shown[file]++
		s.exec = append(s.exec, m)
	}
	return nil
}

// place keeps a mapping of a file. Where there are too many, those of files that are no libraries give way: without code,
// or with code that was generated.
func (s *scratch) place(m *procfs.Mapping) {
	if len(s.files) == maxPlaces && !s.crowded {
		latest := len(s.files) - latestPlaces
		earlier := slices.DeleteFunc(s.files[:latest:latest], func(m procfs.Mapping) bool {
			shown := s.shown[deviceInode{m.Dev, m.Inode}]
			return shown == 0 || shown >= maxFileMappings
		})
		s.files = append(earlier, s.files[latest:]...)
		s.crowded = len(s.files) > maxPlaces/2
	}
	if len(s.files) == maxPlaces {
		s.cut = true
		return
	}
	s.files = append(s.files, *m)
}

// surround notes what is around the mappings without a file from a number in exec on, and returns
// the bytes of the paths that it keeps.
func (s *scratch) surround(after int, around *executable.Around) (paths int) {
	for i := after; i < len(s.exec); i++ {
		if m := &s.exec[i]; m.Inode != 0 || m.Perms&procfs.PermWrite != 0 {
			continue
		}
		if s.around == nil {
			s.around = map[int]*executable.Around{}
		}
		s.around[i] = around
		paths = len(around.Below.Path) // the text is shared
	}
	return paths
}

// addMoved adds code that was moved to what shows files.
func (s *scratch) addMoved(mappings []executable.Mapping) {
	n := len(s.files)
	for i := range mappings {
		if m := &mappings[i]; m.Moved {
			s.files = append(s.files, procfs.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, Dev: m.Dev, Inode: m.Inode})
		}
	}
	if len(s.files) > n {
		slices.SortFunc(s.files, func(a, b procfs.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	}
}

// release lets go of what the last process had.
func (s *scratch) release() {
	clear(s.exec) // it has paths
	s.around = nil
}

// execPages is how many pages the process has executable and not writable, as the kernel
// counts them (exec_vm of struct mm_struct); 0 if not all mappings were read.
func (s *scratch) execPages() uint64 { return s.code / uint64(os.Getpagesize()) }

// extend joins anonymous mappings that follow each other.
func (s *scratch) extend(m procfs.Mapping) bool {
	if len(s.exec) == 0 {
		return false
	}
	last := &s.exec[len(s.exec)-1]
	if last.Inode != 0 || last.Limit != m.Start || last.Path != m.Path {
		return false
	}
	last.Limit = m.Limit
	return true
}

// execMappings turns what was read into mappings with files. It keeps those that
// were known before, and reports whether there is any change.
func (r *reader) execMappings(l *look, s *scratch) (mappings []executable.Mapping, changed bool) {
	changed = len(s.exec) != len(l.info.Mappings)
	mappings = make([]executable.Mapping, 0, len(s.exec))
	o := opening{due: l.read.unread && l.read.reopen.Due(l.beganNs), untilNs: r.opts.cpuTime() + int64(maxOpening)}
	var plain *executable.Mapping // one of a file that is no ELF file
	for i := range l.info.Mappings {
		if m := &l.info.Mappings[i]; m.File != nil && m.File.Plain() {
			plain = m
		}
	}
	for i := range s.exec {
		raw := &s.exec[i]
		around := s.around[i]
		known := l.info.Mapping(raw.Start)
		if known != nil && (!known.Shows(raw) || known.Moved && around == nil) {
			known = nil
		}
		if known != nil && around == nil && !o.again(known) && !r.otherFile(l.tid, raw, known.File) {
			mappings = append(mappings, *known)
			if known.File != nil && known.File.Plain() {
				plain = known
			}
			continue
		}
		var m executable.Mapping
		if known == nil && plain != nil && raw.Dev == plain.Dev && raw.Inode == plain.Inode && !r.otherFile(l.tid, raw, plain.File) {
			m = *plain
			m.Start, m.Limit, m.Offset, m.Since = raw.Start, raw.Limit, raw.Offset, 0
		} else {
			m = r.mapFile(l, raw, around, known, &o)
		}
		if m.File != nil && m.File.Plain() {
			plain = &m
		}
		changed = changed || known == nil || known.File != m.File
		mappings = append(mappings, m)
	}
	l.opened(&o)
	return mappings, changed
}

// opening is what one look does about files that were of no use before, and what comes of it.
type opening struct {
	due     bool  // those that could not be read are tried again
	failed  bool  // some could not be read, which may pass
	first   bool  // among them some that were not tried before
	untilNs int64 // CPU time of this thread when no more are read
	over    bool  // some were not read for that
}

// errOpening says that a look has read files for maxOpening, or that looks are to end.
var errOpening = errors.New("no more files are read in this look")

// again reports whether a mapping that is known is mapped again.
func (o *opening) again(known *executable.Mapping) bool {
	return o.due && known.Inode != 0 && (known.File == nil || known.File.Facts().Fault != nil)
}

// otherFile reports whether a mapping shows another file than before, or another state of it. A
// library that is loaded again most often has the address that it had, and, when it was written
// over meanwhile, or was given the inode of one that was removed, its inode, too. One that is no ELF
// file is not told from a later state of it: nothing is known of its contents, and where programs
// generate code in it, they change all the time.
func (r *reader) otherFile(tid int, raw *procfs.Mapping, known *executable.File) bool {
	if raw.Inode == 0 || known == nil {
		return false
	}
	id, err := r.opts.FS.StatMapped(tid, *raw)
	if known.Plain() {
		id.CtimeNs = known.ID().CtimeNs
	}
	return err == nil && id != known.ID()
}

// mapFile finds the file of a mapping, which is known if it is mapped again.
func (r *reader) mapFile(l *look, raw *procfs.Mapping, around *executable.Around, known *executable.Mapping, o *opening) executable.Mapping {
	m, err := r.openMapping(l, raw, around, o)
	f := m.File
	if mayPass(err) || f != nil && f.Facts().Fault != nil {
		o.failed = true
		o.first = o.first || known == nil
	}
	if err != nil && known != nil {
		return *known
	}
	// The label sources of a file cannot be read: that counts once, in however many processes.
	if err != nil && !o.over || f != nil && (f.Facts().Fault != nil || labelsource.Damaged(f)) && f.FirstTime(damagedNumber) {
		r.counts.fileErrors.Add(1)
	}
	return m
}

// openMapping is Map of the files, as long as the look may take: the rest is left to the next one.
func (r *reader) openMapping(l *look, raw *procfs.Mapping, around *executable.Around, o *opening) (executable.Mapping, error) {
	if (raw.Inode != 0 || around != nil) && (r.ending.Load() || r.opts.cpuTime() > o.untilNs) {
		if !o.over {
			o.over = true
			r.counts.fileErrors.Add(1)
		}
		return executable.Unread(raw), errOpening
	}
	return r.files.Map(l.tid, l.owner, raw, around)
}

// opened notes when files are tried again: those of one look soon, and then less and less often.
func (l *look) opened(o *opening) {
	read := &l.read
	switch {
	case o.first:
		l.again = l.again || !read.unread
		read.unread, read.reopen = true, executable.Backoff{}
	case o.due && o.failed:
		read.reopen = read.reopen.Next(l.beganNs)
	case o.due:
		read.unread = false
	}
}
