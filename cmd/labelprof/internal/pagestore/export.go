// SPDX-License-Identifier: Apache-2.0

package pagestore

import (
	"io"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// WriteProfile writes what a query selects as a gzipped profile of pprof. It fails with the
// errors of the writer.
func WriteProfile(w io.Writer, store *samplestore.Store, q *samplestore.Query) error {
	p := pprof.New(pprof.MaxBytes)
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
		for _, l := range e.Labels {
			s.Attributes = append(s.Attributes, exported(l))
		}
		p.Add(&s)
	})
	p.Span(uint64(max(from, 0))*1e6, uint64(max(to+1, 0))*1e6)
	return p.Profile().Write(w)
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
