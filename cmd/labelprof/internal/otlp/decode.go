// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// ErrOtherSignal says that JSON is of something else.
var ErrOtherSignal = errors.New(`it has no OTLP profiles ("resourceProfiles")`)

// Decoder decodes export requests that take no more memory than allowed. It is safe for
// concurrent use.
type Decoder struct {
	limit int64
	shape *weight.Shape
}

// NewDecoder returns a decoder of requests that take at most limit bytes when they are decoded.
func NewDecoder(limit int64) *Decoder { return &Decoder{limit: limit, shape: requestShape()} }

// Request decodes a request in protobuf. It fails with the errors of weight.Estimate.
func (d *Decoder) Request(data []byte) (pprofile.Profiles, error) {
	estimated, err := weight.Estimate(data, d.shape, d.limit)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	request := pprofileotlp.NewExportRequest()
	if err := request.UnmarshalProto(data); err != nil {
		return pprofile.Profiles{}, weight.ErrWire // the error names types of the wire, and nobody is helped
	}
	profiles := request.Profiles()
	return profiles, d.withPoints(estimated, profiles)
}

// Line decodes a request in JSON. It fails with the errors of weight.EstimateJSON, and with
// ErrOtherSignal.
func (d *Decoder) Line(data []byte) (pprofile.Profiles, error) {
	estimated, err := weight.EstimateJSON(data, d.limit)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	if !json.Valid(data) { // of what is none, more might be decoded than is estimated before it fails
		return pprofile.Profiles{}, fmt.Errorf("it is no JSON: %w", json.Unmarshal(data, new(struct{})))
	}
	request := pprofileotlp.NewExportRequest()
	if err := request.UnmarshalJSON(data); err != nil {
		return pprofile.Profiles{}, fmt.Errorf("its JSON is not that of OTLP profiles: %w", err)
	}
	profiles := request.Profiles()
	if len(data) > len("{}") && profiles.ResourceProfiles().Len() == 0 && profiles.Dictionary().StringTable().Len() == 0 {
		return pprofile.Profiles{}, ErrOtherSignal
	}
	return profiles, d.withPoints(estimated, profiles)
}

// withPoints fails with a *weight.TooLargeError if what Walk makes of the profiles takes
// too much besides them: the points of a sample, and there is one for each value.
func (d *Decoder) withPoints(estimated int64, profiles pprofile.Profiles) error {
	if n := pointsBytes(profiles); n > 0 && estimated+n > d.limit {
		return &weight.TooLargeError{Limit: d.limit}
	}
	return nil
}
