package profile

import (
	"encoding/binary"
	"slices"
)

// stackTable gives equal stacks equal ids.
//
// A stack is encoded as the number of its user frames and of its kernel frames (uvarint
// each) and all its addresses from the outermost user frame to the innermost kernel
// frame, each as the difference to the one before (varint): most are near. Addresses of
// callers are moved into the calling instruction: the one that a return address names may
// belong to another line or even to another function.
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
	t.scratch = slices.Grow(t.scratch[:0], binary.MaxVarintLen64*(2+len(kernel)+len(user)))
	b := t.scratch[:cap(t.scratch)]
	n := binary.PutUvarint(b, uint64(len(user)))
	n += binary.PutUvarint(b[n:], uint64(len(kernel)))
	last := uint64(0)
	for i := len(user) - 1; i >= 0; i-- {
		addr := inCall(user[i], i)
		n += binary.PutVarint(b[n:], int64(addr-last))
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

// inCall moves the address of frame i, which for callers is behind the call, into it.
func inCall(addr uint64, i int) uint64 {
	if i == 0 || addr == 0 {
		return addr
	}
	return addr - 1
}

// empty reports whether a stack has no frames.
func (t *stackTable) empty(id uint32) bool {
	d := decodeStack(t.stacks[id])
	return d.left() == 0
}

func (t *stackTable) forget() {
	*t = stackTable{ids: make(map[string]uint32)}
}

// stackDecoder goes through an encoded stack, from the outermost frame.
type stackDecoder struct {
	encoded      string
	user, kernel int // frames that are left
	last         uint64
}

// decodeStack takes what add has made, or "" for no frames.
func decodeStack(encoded string) stackDecoder {
	d := stackDecoder{encoded: encoded}
	d.user, d.kernel = int(d.uvarint()), int(d.uvarint())
	return d
}

func (d *stackDecoder) left() int { return d.user + d.kernel }

// next returns the next of the frames that are left.
func (d *stackDecoder) next() (FrameKind, uint64) {
	diff := d.uvarint()
	d.last += diff>>1 ^ -(diff & 1) // as encoding/binary's Varint
	if d.user > 0 {
		d.user--
		return User, d.last
	}
	d.kernel--
	return Kernel, d.last
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
	n, limit := 0, min(d.user, other.user)
	for i := 0; n < limit && d.encoded[i] == other.encoded[i]; i++ {
		if d.encoded[i] < 0x80 { // the end of an address
			n++
		}
	}
	for range n {
		d.next()
	}
	return n
}
