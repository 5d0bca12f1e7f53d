package profile

// tooManyFrames stands in the place of a user's frames for which a batch has no room.
const tooManyFrames = "<too many frames>"

// What a frame may take to count as one of Options.MaxFrames. One that takes more counts once more for each.
const (
	frameBytes = 512     // that it adds to the output, by inlined functions or long names
	lineBytes  = 256     // of text that a function counts as besides its names
	textBytes  = 4 << 10 // of text that are looked up in the output
)

// builtStack is a stack of the output.
type builtStack struct {
	index   int32
	lacking bool // it has tooManyFrames in the place of some frames
}

// frameTable has the locations of a process's frames.
type frameTable struct {
	user    map[uint32]map[uint64]int32 // by epoch and address
	runtime map[[2]uint64]int32
}

// has reports whether a user frame of an epoch has a location; in no table, it has.
func (t *frameTable) has(epoch uint32, f decodedFrame) (ok bool) {
	switch {
	case t == nil:
		return true
	case f.kind == Runtime:
		_, ok = t.runtime[[2]uint64{f.addr, f.object}]
	default:
		_, ok = t.user[epoch][f.addr]
	}
	return ok
}

// bytes estimates the memory of a table.
func (t *frameTable) bytes() int {
	frames := len(t.runtime)
	for _, locations := range t.user {
		frames += len(locations)
	}
	return keptTableBytes + keptFrameBytes*frames
}

// keepFrames keeps which frames of the process at hand have a location, where not all have. That is decided when all is
// built, and stays so in the pieces of that: else each piece would have room for as many frames again, or for none that
// entries of another piece had room for. In a process of several users, each has there what any of them had.
func (b *build) keepFrames() {
	if b.lacks && !b.decided {
		b.keptOf[b.process] = &frameTable{b.user, b.runtime}
		b.frameTable = frameTable{}
	}
}

// decide says that all is built. What is kept of that counts beside what is built next.
func (b *build) decide() {
	if !b.decided {
		b.decided = true
		for _, t := range b.keptOf {
			b.keptBytes += t.bytes()
		}
	}
}

// full reports whether those frames of an entry that are not known yet are left out, because the user has as many
// as Options.MaxFrames.
func (b *build) full(e entryRef) bool {
	return !b.decided && b.opts.MaxFrames > 0 && b.parts[e.part].frames >= b.opts.MaxFrames
}

// admit reports whether a frame that is not known yet gets a location of its own, and counts it. A stack that has
// begun gets all of its frames.
func (b *build) admit(f decodedFrame) bool {
	if b.crowded || !b.kept.has(b.epoch, f) {
		return false
	}
	b.admitted++
	return true
}

// weighFrame counts what the frame that was admitted last has added to the output since that had so many bytes, or
// what it took to find in it what was there, if that is more.
func (b *build) weighFrame(f *Frame, before int) {
	text := 0
	for i := range f.Lines {
		text += lineBytes + len(f.Lines[i].Function) + len(f.Lines[i].File)
	}
	b.admitted += max((b.tables.bytes-before)/frameBytes, text/textBytes)
}

// tooMany returns the location that stands for all frames that are left out.
func (b *build) tooMany() int32 {
	if b.standIn == 0 {
		b.standIn = b.tables.location(0, Frame{Lines: []Line{{Function: tooManyFrames}}})
	}
	return b.standIn
}

// lack notes that the samples of an entry lack frames.
func (b *build) lack(e entryRef, samples int) {
	b.lacks = true
	b.parts[e.part].lackingFrames += samples
}

// LackingFrames returns how many of the samples lack frames because of Options.MaxFrames in what Requests has
// made of them last.
func (b *Builder) LackingFrames() int { return b.lackingFrames }
