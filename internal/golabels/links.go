package golabels

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

// kind is what matters of a type on the way to the form of the labels.
type kind uint8

const (
	kindNone    kind = iota
	kindTypedef      // of another type
	kindPointer      // to another type
	kindSingle       // a structure of one member, which is of another type
	kindSlice        // a slice: the other type is a pointer to what it has
	kindLabel        // a structure of a key and a value of another type
	kindString       // string
	kindMap          // the runtime's header of a map[string]string
)

const (
	// maxLinks bounds what is kept of a unit, outside of Go's heap: 8 bytes each. The unit
	// with all types of a program of 500 MB has about 20 MiB, with some 12,000 entries in each.
	maxLinks = 512 << 10

	// refBits of an offset in a unit are kept with a kind above them.
	refBits = 28
)

const _ = uint(1<<refBits - maxInfoBytes) // all offsets fit

// errLinks says that a unit has more types than are kept.
var errLinks = fmt.Errorf("%w: more than %d types that refer to others in a unit", errTooMuch, maxLinks)

// link is a type of a unit and the one that it refers to.
type link struct {
	at  uint32 // offset in the unit
	ref uint32 // kind and, of the other type, offset in the unit
}

func (l link) kind() kind { return kind(l.ref >> refBits) }

// links are those of one unit, by offset: a type may refer to one before it, which has
// streamed by.
type links struct {
	unit uint64 // offset in .debug_info
	list []link
	free func()
}

func newLinks() *links {
	l := &links{}
	l.list, l.free = offheap.Reserve[link](maxLinks)
	return l
}

// start forgets the links for those of another unit.
func (l *links) start(u *unit) { l.unit, l.list = u.at, l.list[:0] }

// offset is that in the unit for one in .debug_info. 0: it is outside, or too far.
func (l *links) offset(at uint64) uint32 {
	if at < l.unit || at-l.unit >= 1<<refBits {
		return 0
	}
	return uint32(at - l.unit)
}

// add keeps a type, each behind the ones before.
func (l *links) add(k kind, at, ref uint64) error {
	if k == kindNone {
		return nil
	}
	if len(l.list) == maxLinks {
		return errLinks
	}
	l.list = append(l.list, link{at: l.offset(at), ref: uint32(k)<<refBits | l.offset(ref)})
	return nil
}

// at returns the type at an offset in the unit, following names to the type itself.
func (l *links) at(offset uint32) link {
	for range maxSteps {
		i, ok := slices.BinarySearchFunc(l.list, offset, func(k link, at uint32) int { return cmp.Compare(k.at, at) })
		if !ok {
			break
		}
		if l.list[i].kind() != kindTypedef {
			return l.list[i]
		}
		offset = l.list[i].next()
	}
	return link{}
}

// next is the offset of the type that one refers to.
func (l link) next() uint32 { return l.ref & (1<<refBits - 1) }

// to returns the type that one refers to.
func (l *links) to(k link) link { return l.at(k.next()) }
