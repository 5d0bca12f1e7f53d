// SPDX-License-Identifier: Apache-2.0

package pagestore

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// WriteProfile writes what a query selects as a gzipped profile of pprof. It fails before the
// first byte if that has no room for all of it, else with the errors of the writer.
func WriteProfile(w io.Writer, store *samplestore.Store, q *samplestore.Query) error {
	return writeProfile(w, store, q, max(pprof.MaxBytes, int(store.Status().Max)))
}

func writeProfile(w io.Writer, store *samplestore.Store, q *samplestore.Query, maxBytes int) error {
	p := pprof.New(maxBytes)
	if q.Kind == sample.OffCPU {
		p.OffCPU()
	}
	noProcess := &sample.Process{}
	var s sample.Sample
	from, to := store.Export(q, func(e *samplestore.Entry) {
		s = sample.Sample{Hits: e.Hits, Ns: e.Ns, Process: noProcess, Stack: e.Stack, Attributes: s.Attributes[:0]}
		if e.Hits > 0 && q.Kind == sample.OnCPU {
			s.PeriodNs = e.Ns / e.Hits
		}
		s.Attributes = appendExported(s.Attributes, e.Labels)
		p.Add(&s)
	})
	if p.Bytes() > maxBytes { // the builder leaves out what comes then
		return fmt.Errorf("the samples take more than %d MiB as a pprof profile: filter them, or start labelprof serve with a larger --max-memory than that", maxBytes>>20)
	}
	p.Span(uint64(max(from, 0))*1e6, uint64(max(to+1, 0))*1e6)
	return p.Profile().Write(w)
}

// appendExported appends labels as attributes. Those with the prefix are the last: they had
// to give way to one without it, and shall again.
func appendExported(to []sample.Attribute, labels []samplestore.Label) []sample.Attribute {
	for _, prefixed := range []bool{false, true} {
		for _, l := range labels {
			if strings.HasPrefix(l.Key, sample.LabelPrefix) == prefixed {
				to = append(to, exported(l))
			}
		}
	}
	return to
}

// exported is a label as an attribute again.
func exported(l samplestore.Label) sample.Attribute {
	a := sample.Attribute{Key: l.Key, Text: l.Value}
	if l.Number {
		n, err := strconv.ParseInt(l.Value, 10, 64)
		a.Number, a.IsNumber = n, err == nil
	}
	return a
}
