package profile

const (
	// outputShare times what was added is what Build makes of it at most, as a rule: each
	// sample once more with its attributes, and the tables by which equal ones are found.
	outputShare = 3
	// locationBytes is what a stack has of a frame there.
	locationBytes = 4
)

// Held estimates the memory that the Builder has, with what it keeps over a Reset.
func (b *Builder) Held() int {
	return entryBytes*cap(b.entries) + 4*cap(b.sampleEntries) + 8*cap(b.sampleTimes) + valueBytes*cap(b.sampleValues) + b.stacks.bytes
}

// OutputBytes estimates the memory of what Build makes, and needs for that.
func (b *Builder) OutputBytes() int {
	return outputShare*(b.bytes+b.stacks.bytes) + locationBytes*b.stacks.frames
}
