package unwind

// Pointer encodings (DW_EH_PE_*, LSB Core 5.0, section 10.5.1): the format in
// the low four bits, what it is relative to in the next three.
const (
	encAbsolute = 0x00
	encULEB     = 0x01
	encU2       = 0x02
	encU4       = 0x03
	encU8       = 0x04
	encSLEB     = 0x09
	encS2       = 0x0a
	encS4       = 0x0b
	encS8       = 0x0c
	encFormat   = 0x0f

	encPCRelative   = 0x10
	encDataRelative = 0x30
	encRelative     = 0x70
	encIndirect     = 0x80
	encOmit         = 0xff
)

// knownEncoding reports whether addresses of FDEs of that encoding can be read.
// Nothing tells what code would be relative to but the field itself: there is
// no base of data in 64-bit objects.
func knownEncoding(enc uint8) bool {
	switch enc & encFormat {
	case encAbsolute, encULEB, encU2, encU4, encU8, encSLEB, encS2, encS4, encS8:
	default:
		return false
	}
	return enc&^encFormat == 0 || enc&^encFormat == encPCRelative
}

// value reads a number in the format of an encoding.
func (c *cursor) value(enc uint8) uint64 {
	switch enc & encFormat {
	case encULEB:
		return c.uleb()
	case encU2:
		return uint64(c.u16())
	case encU4:
		return uint64(c.u32())
	case encSLEB:
		return uint64(c.sleb())
	case encS2:
		return uint64(int64(int16(c.u16())))
	case encS4:
		return uint64(int64(int32(c.u32())))
	case encAbsolute, encU8, encS8:
		return c.u64()
	}
	c.bad = true
	return 0
}

// pointer reads an address; vaddr is the address of the cursor's first byte,
// data what encDataRelative is relative to.
func (c *cursor) pointer(enc uint8, vaddr, data uint64) uint64 {
	at := vaddr + uint64(c.off)
	v := c.value(enc)
	switch enc & encRelative {
	case 0:
		return v
	case encPCRelative:
		return at + v
	case encDataRelative:
		return data + v
	}
	c.bad = true
	return 0
}
