package profile

import "github.com/customlabels/otelcol-customlabels/internal/labels"

// overflow is what an entry lacks because there were too many.
type overflow uint8

const (
	noOverflow    overflow = iota
	labelOverflow          // its label set and link
	stackOverflow          // also its stack, thread and CPU
)

// Overflown returns how many of the samples lack their labels because of
// Options.MaxEntries, and how many lack their stacks.
func (b *Builder) Overflown() (sets, stacks int) {
	return b.overflown[labelOverflow], b.overflown[stackOverflow]
}

// setsFull reports whether new entries do without their labels.
func (b *Builder) setsFull() bool {
	return b.opts.MaxEntries > 0 && len(b.entries) >= b.opts.MaxEntries
}

// stacksFull reports whether new entries do without their stack, too.
func (b *Builder) stacksFull() bool {
	return b.opts.MaxEntries > 0 && len(b.entries) >= 2*b.opts.MaxEntries
}

// withoutLabels has the overflow set for a set with labels, and no link. Where there
// was nothing, nothing is lost.
func (k key) withoutLabels() key {
	if k.link.IsZero() && (k.set == nil || k.set.Len() == 0) {
		return k
	}
	k.set, k.link, k.sampled = labels.OverflowSet(), labels.Link{}, SampledUnknown
	k.overflow = labelOverflow
	return k
}

// withoutStack is one of a few keys that a process can have: what remains is its state.
func (k key) withoutStack(empty uint32) key {
	k = k.withoutLabels()
	return key{process: k.process, set: k.set, state: k.state, stack: empty, cut: true, overflow: stackOverflow}
}

// emptyStack is the id of the stack without frames.
func (b *Builder) emptyStack() uint32 {
	if id, ok := b.stacks.find(nil, nil); ok {
		return id
	}
	id, added := b.stacks.add()
	b.bytes += added
	b.fresh += added
	return id
}
