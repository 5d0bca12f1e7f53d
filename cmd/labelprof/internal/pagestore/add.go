// SPDX-License-Identifier: Apache-2.0

package pagestore

import (
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// Add puts the samples of a batch into a store, in one step: no query sees a part of them.
func Add(store *samplestore.Store, walk sample.Walk) sample.Batch {
	var found sample.Batch
	clean := newCleaner()
	store.Batch(func(add func(*samplestore.Sample)) {
		found = walk(func(s *sample.Sample) { add(clean.stored(s)) })
	})
	return found
}
