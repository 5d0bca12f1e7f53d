// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"errors"
	"fmt"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// ErrFormat says that bytes are no profile.
var ErrFormat = errors.New("it is gzipped, but no pprof file")

// ErrNoTime says that a profile is of something else.
var ErrNoTime = errors.New("it has neither CPU time nor off-CPU time")

// Decoder decodes profiles that take no more memory than allowed. It is safe for concurrent
// use.
type Decoder struct {
	limit int64
	shape *weight.Shape
}

// NewDecoder returns a decoder of profiles that take at most limit bytes when they are decoded.
func NewDecoder(limit int64) *Decoder { return &Decoder{limit: limit, shape: shape()} }

// Decode decodes a profile that is unpacked. It fails with ErrFormat, ErrNoTime, and with the
// errors of weight.Estimate.
func (d *Decoder) Decode(data []byte) (*profile.Profile, error) {
	if _, err := weight.Estimate(data, d.shape, d.limit); errors.Is(err, weight.ErrWire) {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	} else if err != nil {
		return nil, err
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(kindsOf(p)) == 0 {
		return nil, ErrNoTime
	}
	return p, nil
}
