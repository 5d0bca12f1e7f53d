package symbol

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// maxGoLineBytes bounds the functions of one program that are kept by address.
	maxGoLineBytes = 4 << 20
	// lineStep of it is made free at least when it is full: to find what goes takes a look at all.
	lineStep = maxGoLineBytes / 8
	// goLineBytes is what an address takes besides the strings of its functions.
	goLineBytes = 96
	frameBytes  = 64
)

// goLine is what is at an address.
type goLine struct {
	frames   []Frame
	language Language
	uid      uint32 // for whom it was read
}

// bytes returns the memory that a line takes, roughly.
func (l *goLine) bytes() int {
	n := goLineBytes
	for _, f := range l.frames {
		n += frameBytes + len(f.Name) + len(f.File)
	}
	return n
}

// lineSet is what is known of addresses of a Go program.
type lineSet struct {
	byAddress map[uint64]goLine
	bytes     int
	users     map[uint32]int // bytes
}

// add enters what is at an address that was not known.
func (s *lineSet) add(vaddr uint64, line goLine) {
	if s.byAddress == nil {
		s.byAddress, s.users = map[uint64]goLine{}, map[uint32]int{}
	}
	n := line.bytes()
	s.byAddress[vaddr] = line
	s.bytes += n
	s.users[line.uid] += n
}

// makeRoom drops lines where there is no room for so many bytes more, and returns how many bytes it has dropped:
// all of the user who has most, and then of the next. So who has a program looked up at any number of addresses
// drops his own, and not what is known for others.
func (s *lineSet) makeRoom(bytes int) (dropped int) {
	lack := s.bytes + bytes - maxGoLineBytes
	if lack <= 0 {
		return 0
	}
	goes := map[uint32]bool{}
	for _, uid := range slices.SortedFunc(maps.Keys(s.users), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.users[b], s.users[a]), cmp.Compare(a, b))
	}) {
		goes[uid] = true
		dropped += s.users[uid]
		if dropped >= max(lack, lineStep) {
			break
		}
	}
	s.drop(goes)
	s.bytes -= dropped
	return dropped
}

// drop forgets what was read for users.
func (s *lineSet) drop(of map[uint32]bool) {
	if len(of) == len(s.users) {
		s.byAddress, s.users = nil, nil // which gives the memory back
		return
	}
	maps.DeleteFunc(s.byAddress, func(_ uint64, line goLine) bool { return of[line.uid] })
	maps.DeleteFunc(s.users, func(uid uint32, _ int) bool { return of[uid] })
}
