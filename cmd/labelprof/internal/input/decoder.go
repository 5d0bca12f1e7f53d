// SPDX-License-Identifier: Apache-2.0

package input

import (
	"sync"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
)

// Decoder decodes what fits into memory, one at a time. It is safe for concurrent use.
type Decoder struct {
	memory   Memory
	requests *otlp.Decoder
	profiles *pprof.Decoder

	mu sync.Mutex // held while there is something decoded
}

// NewDecoder returns a decoder that takes no more than this memory.
func NewDecoder(m Memory) *Decoder {
	return &Decoder{memory: m, requests: otlp.NewDecoder(m.decoded()), profiles: pprof.NewDecoder(m.decoded())}
}

// Memory is what the decoder may take.
func (d *Decoder) Memory() Memory { return d.memory }

// Request hands over a request in protobuf. Others wait until visit has returned; visit owns
// the batch. It fails with the errors of weight.Estimate.
func (d *Decoder) Request(data []byte, visit func(pprofile.Profiles)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	profiles, err := d.requests.Request(data)
	if err != nil {
		return err
	}
	visit(profiles)
	return nil
}

// line hands over a request in JSON.
func (d *Decoder) line(data []byte, visit func(pprofile.Profiles)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	profiles, err := d.requests.Line(data)
	if err != nil {
		return err
	}
	visit(profiles)
	return nil
}

// profile hands over a profile of pprof.
func (d *Decoder) profile(data []byte, visit func(*profile.Profile)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.profiles.Decode(data)
	if err != nil {
		return err
	}
	visit(p)
	return nil
}
