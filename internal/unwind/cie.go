package unwind

// cie is what a common information entry says to its FDEs.
type cie struct {
	ok            bool // false: its FDEs cannot be read
	signal        bool // augmentation S: a signal frame
	augmented     bool // augmentation z: FDEs have augmentation data
	encoding      uint8
	codeAlignment uint64
	dataAlignment int64
	ra            uint64 // column of the return address
	initial       state
}

// parseCIE reads a CIE from behind its id (DWARF 5, section 6.4.1; LSB Core
// 5.0, section 10.6.1).
func (m *machine) parseCIE(c *cursor, vaddr uint64, eh bool) cie {
	x := cie{}
	version := c.u8()
	if version != 1 && version != 3 && version != 4 {
		return x
	}
	augmentation := c.name()
	if string(augmentation) == "eh" { // gcc 2
		c.u64()
		augmentation = nil
	}
	if version == 4 {
		if addressBytes, segmentBytes := c.u8(), c.u8(); addressBytes != 8 || segmentBytes != 0 {
			return x
		}
	}
	x.codeAlignment, x.dataAlignment = c.uleb(), c.sleb()
	if x.ra = uint64(c.u8()); version != 1 {
		c.off--
		x.ra = c.uleb()
	}
	if c.bad || !x.augment(c, augmentation) {
		return x
	}
	if eh && !knownEncoding(x.encoding) {
		return x
	}
	m.begin(&x)
	x.ok = !c.bad && m.run(c, vaddr, 0, 0, nil)
	x.initial = m.state
	return x
}

// augment reads what the letters of the augmentation announce.
func (x *cie) augment(c *cursor, letters []byte) bool {
	if len(letters) == 0 {
		return true
	}
	if letters[0] != 'z' {
		return false
	}
	x.augmented = true
	data := cursor{b: c.bytes(c.uleb())}
	for _, l := range letters[1:] {
		switch l {
		case 'R':
			x.encoding = data.u8()
		case 'P': // the personality routine
			enc := data.u8()
			if enc != encOmit {
				data.value(enc)
			}
		case 'L': // encoding of the language's data
			data.u8()
		case 'S':
			x.signal = true
		case 'B', 'G': // return addresses are signed with key B; tagged stack
		default:
			return false
		}
	}
	return !data.bad && !c.bad
}
