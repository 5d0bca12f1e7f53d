package cpython

import (
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// Offsets behind an object's PyObject that are the same in all versions.
const (
	bytesText = 16 // PyBytesObject.ob_sval, behind size and hash
	textState = 16 // PyASCIIObject.state, behind length and hash
)

// PyObject.ob_type: what stands before it, has the references. A free-threaded build counts
// those of the owning thread and others apart.
const (
	objectType             = 8
	objectTypeFreeThreaded = 24
)

// PyObject.ob_ref_local and ob_ref_shared of a free-threaded build. The lowest bits of the latter are
// no count (_Py_REF_SHARED_SHIFT).
const (
	localReferences  = 12
	sharedReferences = 16
	sharedShift      = 2
)

// Of PyObject.ob_refcnt of other builds. The upper 16 bits are flags in 3.14 (ob_flags). A count is below
// maxReferences: an immortal object has up to 2^32-1 references, and extensions that were built for 3.11 or
// before may carry what they add beyond that. The address of a free block is above.
const (
	referencesMask = 1<<48 - 1
	maxReferences  = 1 << 34
)

// headerBytes is the size of PyObject: PyVarObject.ob_size and PyASCIIObject.length follow.
func (l *Layout) headerBytes() uint64 { return uint64(l.process.ObjectType) + 8 }

// referred reports whether an object that begins with these bytes has references. One that was freed has
// 0, or where pymalloc has written the address of the next free block, no count.
func (l *Layout) referred(object []byte) bool {
	if l.process.ObjectType == objectTypeFreeThreaded {
		return binary.LittleEndian.Uint32(object[localReferences:]) != 0 || word(object, sharedReferences)>>sharedShift != 0
	}
	n := word(object, 0) & referencesMask
	return n > 0 && n < maxReferences
}

// readBytes reads a PyBytesObject: of a long one the beginning, and that it is cut.
func (l *Layout) readBytes(mem langruntime.Memory, object uint64) (b []byte, cut bool, err error) {
	var size [8]byte
	if err := read(mem, size[:], object+l.headerBytes()); err != nil {
		return nil, false, err
	}
	n := word(size[:], 0)
	b = make([]byte, min(n, maxTableBytes))
	return b, n > maxTableBytes, read(mem, b, object+l.headerBytes()+bytesText)
}

// read reads of an object, which has gone if it cannot be read.
func read(mem langruntime.Memory, p []byte, addr uint64) error {
	if len(p) == 0 {
		return nil
	}
	if err := mem.ReadAt(p, addr); err != nil {
		return fmt.Errorf("%w: %w", langruntime.ErrGone, err)
	}
	return nil
}
