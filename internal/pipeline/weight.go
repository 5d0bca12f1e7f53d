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
func (a *aggregator) weigh() {
	a.labelsHeld.set(a.memory, budget.OfLabels, a.labels.Bytes())
	a.waitingHeld.set(a.memory, budget.OfWaiting, a.awaiting.bytes+a.offCPUBytes)
	a.batch.weight.set(a.memory, budget.OfBatches, a.batch.held)
}

// minForgotten are how many bytes of remembered reads are worth forgetting: each takes a look at all users.
const minForgotten = 64 << 10

// batchBytes is at how many bytes a batch is handed over: the less memory there is left,
// the sooner.
func (a *aggregator) batchBytes(p budget.Pressure) int {
	switch p {
	case budget.Relaxed:
		return a.maxBytes
	case budget.Tight:
		return a.maxBytes / 4
	case budget.Scarce:
		return a.maxBytes / 16
	}
	return a.maxBytes / 64
}

// releaseLabels lets go of the label sets once the batch has been handed over, which
// takes over what they count until it has been exported. Keys stay, and what was read is forgotten.
func (a *aggregator) releaseLabels() {
	held := a.labelsHeld.counted
	keys := min(a.labels.KeyBytes(), held)
	sets := max(held-keys-a.labels.ReadBytes(), 0)
	a.memory.Add(budget.OfLabels, keys+sets-held)
	a.labelsHeld.counted = keys
	a.batch.labels += sets
}
