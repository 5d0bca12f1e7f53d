//go:build linux && (amd64 || arm64)

package pipeline

import (
	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// weightStep is how far what is counted of memory may be off, so that not each sample
// touches what all goroutines share.
const weightStep = 16 << 10

// weight is what is counted of the memory of something. It belongs to who holds that.
type weight struct{ counted int }

func (w *weight) set(m *budget.Memory, part budget.Part, bytes int) {
	if diff := bytes - w.counted; diff >= weightStep || diff <= -weightStep {
		m.Add(part, diff)
		w.counted = bytes
	}
}

// part takes what something has that is a part of the whole and becomes a whole by itself.
func (w *weight) part(bytes int) weight {
	of := weight{min(bytes, w.counted)}
	w.counted -= of.counted
	return of
}

func (w *weight) forget(m *budget.Memory, part budget.Part) {
	m.Add(part, -w.counted)
	w.counted = 0
}

// weigh counts what the aggregator holds.
func (d *aggregator) weigh() {
	d.labelsHeld.set(d.memory, budget.OfLabels, d.labels.Bytes())
	d.waitingHeld.set(d.memory, budget.OfWaiting, d.awaiting.bytes+d.offCPUBytes)
	d.batch.weight.set(d.memory, budget.OfBatches, d.batch.held)
}

// minForgotten are how many bytes of remembered reads are worth forgetting: each takes a look at all users.
const minForgotten = 64 << 10

// batchBytes is at how many bytes a batch is handed over: the less memory there is left,
// the sooner.
func (d *aggregator) batchBytes(p budget.Pressure) int {
	switch p {
	case budget.Relaxed:
		return d.maxBytes
	case budget.Tight:
		return d.maxBytes / 4
	case budget.Scarce:
		return d.maxBytes / 16
	}
	return d.maxBytes / 64
}

// releaseLabels lets go of the label sets once the batch has been handed over, which
// takes over what they count until it has been exported. Keys stay, and what was read is forgotten.
func (d *aggregator) releaseLabels() {
	held := d.labelsHeld.counted
	keys := min(d.labels.KeyBytes(), held)
	sets := max(held-keys-d.labels.ReadBytes(), 0)
	d.memory.Add(budget.OfLabels, keys+sets-held)
	d.labelsHeld.counted = keys
	d.batch.labels += sets
}
