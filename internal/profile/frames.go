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

// full reports whether those frames of an entry that are not known yet are left out, because the user has as many
// as Options.MaxFrames. Which entries are full is decided when all of them are built, and stays so in the pieces of
// them: else each piece would have room for as many frames again.
func (b *build) full(e entryRef) bool {
	p := &b.parts[e.part]
	if b.decided {
		return len(p.lacking) > 0 && p.lacking[e.entry]
	}
	return b.opts.MaxFrames > 0 && p.frames >= b.opts.MaxFrames
}

// admit reports whether a frame that is not known yet gets a location of its own, and counts it. A stack that has
// begun gets all of its frames.
func (b *build) admit() bool {
	if b.crowded {
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
	if b.decided {
		return
	}
	p := &b.parts[e.part]
	if p.lacking == nil {
		p.lacking = make([]bool, len(p.entries))
	}
	p.lacking[e.entry] = true
	p.lackingFrames += samples
}

// LackingFrames returns how many of the samples lack frames because of Options.MaxFrames in what Requests has
// made of them last.
func (b *Builder) LackingFrames() int { return b.lackingFrames }
