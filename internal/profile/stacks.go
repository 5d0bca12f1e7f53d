package profile

import (
	"encoding/binary"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// stackTable gives equal stacks equal ids.
//
// A stack is encoded as the number of its user frames and of its kernel frames (uvarint
// each) and all its addresses from the outermost user frame to the innermost kernel
// frame, each as the difference to the one before (varint): most are near. Addresses of
// callers are moved into the calling instruction: the one that a return address names may
// belong to another line or even to another function.
//
// Frames of a language runtime are two words. A user frame therefore is 2 * difference
// (uvarint), or 2 * the difference of the first word to the one of the runtime's frame before,
// plus 3, and that of the second one (varint), or 1 and the whole address (uvarint).
type stackTable struct {
	ids     map[string]uint32
	stacks  []string // encoded, by id
	bytes   int
	frames  int // of all stacks
	scratch []byte
}

// find returns the id of a stack, if it is known. If not, add adds the one that was
// looked for last.
func (t *stackTable) find(kernel, user []uint64) (id uint32, ok bool) {
	t.scratch = slices.Grow(t.scratch[:0], binary.MaxVarintLen64*(2+len(kernel)+2*len(user)))
	b := t.scratch[:cap(t.scratch)]
	n := binary.PutUvarint(b, uint64(userFrames(user)))
	n += binary.PutUvarint(b[n:], uint64(len(kernel)))
	last, word, object := uint64(0), uint64(runtimeBase), uint64(0)
	for i := len(user) - 1; i >= 0; i-- {
		if isRuntime(user, i-1) {
			n += binary.PutUvarint(b[n:], zigzag(user[i-1]-word)<<1+runtimeMark)
			n += binary.PutVarint(b[n:], int64(user[i]-object))
			word, object = user[i-1], user[i]
			i--
			continue
		}
		addr := inCall(user[i], i)
		if diff := zigzag(addr - last); diff>>63 == 0 {
			n += binary.PutUvarint(b[n:], diff<<1)
		} else {
			n += binary.PutUvarint(b[n:], wholeMark)
			n += binary.PutUvarint(b[n:], addr)
		}
		last = addr
	}
	for i := len(kernel) - 1; i >= 0; i-- {
		addr := inCall(kernel[i], i)
		n += binary.PutVarint(b[n:], int64(addr-last))
		last = addr
	}
	t.scratch = b[:n]
	id, ok = t.ids[string(t.scratch)]
	return id, ok
}

// add returns the id of a new stack, and the memory that it takes.
func (t *stackTable) add() (id uint32, added int) {
	encoded := string(t.scratch)
	id = uint32(len(t.stacks))
	t.ids[encoded] = id
	t.stacks = append(t.stacks, encoded)
	added = stackBytes + len(encoded)
	t.bytes += added
	d := decodeStack(encoded)
	t.frames += d.left()
	return id, added
}

// Marks of user frames that are no difference.
const (
	wholeMark   = 1
	runtimeMark = 3
)

// runtimeBase is before the first word of all frames of runtimes, near enough that differences
// leave a bit free.
const runtimeBase = 1 << 63

// zigzag makes differences of either sign small: as encoding/binary's Varint.
func zigzag(diff uint64) uint64 { return diff<<1 ^ uint64(int64(diff)>>63) }

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }

// isRuntime reports whether the frame at i of a user stack is one of a language runtime, whose
// second word is the next. Words that follow such a first one are looked at from the inner end.
func isRuntime(user []uint64, i int) bool {
	if i < 0 {
		return false
	}
	_, ok := record.RuntimeWordOf(user[i])
	return ok
}

// userFrames counts the frames of a user stack.
func userFrames(user []uint64) int {
	n := len(user)
	for i := 0; i+1 < len(user); i++ {
		if isRuntime(user, i) {
			n--
			i++
		}
	}
	return n
}

// inCall moves the address of frame i, which for callers is behind the call, into it.
func inCall(addr uint64, i int) uint64 {
	if i == 0 || addr == 0 {
		return addr
	}
	return addr - 1
}

func (t *stackTable) forget() {
	*t = stackTable{ids: make(map[string]uint32)}
}

// stackDecoder goes through an encoded stack, from the outermost frame.
type stackDecoder struct {
	encoded      string
	user, kernel int // frames that are left
	last         uint64
	word, object uint64 // of the last frame of a runtime
}

// A decodedFrame is an address, or the two words of a frame of a language runtime.
type decodedFrame struct {
	kind         FrameKind
	addr, object uint64
}

// decodeStack takes what add has made, or "" for no frames.
func decodeStack(encoded string) stackDecoder {
	d := stackDecoder{encoded: encoded, word: runtimeBase}
	d.user, d.kernel = int(d.uvarint()), int(d.uvarint())
	return d
}

func (d *stackDecoder) left() int { return d.user + d.kernel }

// next returns the next of the frames that are left.
func (d *stackDecoder) next() decodedFrame {
	v := d.uvarint()
	if d.user == 0 {
		d.kernel--
		d.last += unzigzag(v)
		return decodedFrame{kind: Kernel, addr: d.last}
	}
	d.user--
	switch {
	case v&1 == 0:
		d.last += unzigzag(v >> 1)
	case v == wholeMark:
		d.last = d.uvarint()
	default:
		d.word += unzigzag((v - runtimeMark) >> 1)
		d.object += unzigzag(d.uvarint())
		return decodedFrame{kind: Runtime, addr: d.word, object: d.object}
	}
	return decodedFrame{kind: User, addr: d.last}
}

func (d *stackDecoder) uvarint() uint64 {
	x := uint64(0)
	for i := range len(d.encoded) {
		c := d.encoded[i]
		x |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.encoded = d.encoded[i+1:]
			return x
		}
	}
	return 0
}

// skip goes over the outermost frames, user frames only, that d has in common with
// another stack, and returns how many they are. Both are at their beginning.
func (d *stackDecoder) skip(other stackDecoder) int {
	n, limit, numbers := 0, min(d.user, other.user), 0
	for i, first := 0, true; n < limit && d.encoded[i] == other.encoded[i]; i++ {
		if first && numbers == 0 {
			numbers = 1 + int(d.encoded[i]&1) // of this frame
		}
		if first = d.encoded[i] < 0x80; !first {
			continue // not the end of a number
		}
		if numbers--; numbers == 0 {
			n++
		}
	}
	for range n {
		d.next()
	}
	return n
}
