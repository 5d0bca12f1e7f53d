package profile

import (
	"encoding/binary"
	"unsafe"
)

const (
	stackHeadBytes = 4
	addressBytes   = 8
)

// stackTable gives equal stacks equal ids.
//
// A stack is encoded as the number of its kernel frames (u32) and all its
// addresses (u64 each), kernel first: the length gives the number of user frames.
type stackTable struct {
	ids     map[string]uint32
	stacks  []string // encoded, by id
	bytes   int
	scratch []byte
}

// find returns the id of a stack, if it is known. If not, add adds the one that was
// looked for last.
func (t *stackTable) find(kernel, user []uint64) (id uint32, ok bool) {
	b := binary.LittleEndian.AppendUint32(t.scratch[:0], uint32(len(kernel)))
	for _, addr := range kernel {
		b = binary.LittleEndian.AppendUint64(b, addr)
	}
	for _, addr := range user {
		b = binary.LittleEndian.AppendUint64(b, addr)
	}
	t.scratch = b
	id, ok = t.ids[string(b)]
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
	return id, added
}

// frames yields the frames of a stack, leaf first, but for so many outermost ones.
// Addresses of callers are moved into the calling instruction: the one that a return
// address names may belong to another line or even to another function.
func (t *stackTable) frames(id uint32, outer int, yield func(FrameKind, uint64)) {
	b := encodedBytes(t.stacks[id])
	kernel := int(binary.LittleEndian.Uint32(b))
	b = b[stackHeadBytes : len(b)-addressBytes*outer]
	for i := 0; len(b) > 0; i++ {
		addr := binary.LittleEndian.Uint64(b)
		b = b[addressBytes:]
		kind, leaf := Kernel, i == 0
		if i >= kernel {
			kind, leaf = User, i == kernel
		}
		if !leaf && addr > 0 {
			addr--
		}
		yield(kind, addr)
	}
}

// commonCallers returns how many of the outermost frames two encoded stacks share;
// only of user frames that are no leaf in either. A stack may be "".
func commonCallers(x, y string) int {
	a, b := encodedBytes(x), encodedBytes(y)
	n, limit := 0, min(callers(a), callers(b))
	for n < limit {
		a, b = a[:len(a)-addressBytes], b[:len(b)-addressBytes]
		if binary.LittleEndian.Uint64(a[len(a):len(a)+addressBytes]) != binary.LittleEndian.Uint64(b[len(b):len(b)+addressBytes]) {
			break
		}
		n++
	}
	return n
}

// callers returns the number of user frames that are no leaf.
func callers(stack []byte) int {
	if len(stack) < stackHeadBytes {
		return 0
	}
	user := (len(stack)-stackHeadBytes)/addressBytes - int(binary.LittleEndian.Uint32(stack))
	return max(user-1, 0)
}

// encodedBytes are not to be modified.
func encodedBytes(stack string) []byte { return unsafe.Slice(unsafe.StringData(stack), len(stack)) }

// empty reports whether a stack has no frames.
func (t *stackTable) empty(id uint32) bool { return len(t.stacks[id]) == stackHeadBytes }

func (t *stackTable) forget() {
	t.ids = make(map[string]uint32)
	t.stacks, t.bytes = nil, 0
}
