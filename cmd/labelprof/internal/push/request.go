// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// offCPUTypes tells Pyroscope what the values of an off-CPU profile are, which it does not
// know by itself: the form field sample_type_config. The name becomes that of the metric, but where
// it has "cpu" in it, as off_cpu has, the metric is process_cpu.
const offCPUTypes = `{
  "samples": {"units": "samples", "aggregation": "sum", "display-name": "off_processor", "sampled": false},
  "off_cpu": {"units": "samples", "aggregation": "sum", "display-name": "off_processor", "sampled": false}
}`

// A body is what is posted, the same at each try.
type body struct {
	bytes       []byte
	contentType string
}

// bodyOf is a part as Pyroscope takes it: a CPU profile as it is, any other in a form with what
// its values are.
func bodyOf(p *part) (*body, error) {
	var packed bytes.Buffer
	if err := p.profile.Profile().Write(&packed); err != nil {
		return nil, fmt.Errorf("encode the profile: %w", err)
	}
	if p.kind != sample.OffCPU {
		return &body{packed.Bytes(), "application/octet-stream"}, nil
	}
	var all bytes.Buffer
	form := multipart.NewWriter(&all)
	for _, field := range []struct {
		name string
		data []byte
	}{{"profile", packed.Bytes()}, {"sample_type_config", []byte(offCPUTypes)}} {
		w, err := form.CreateFormFile(field.name, field.name)
		if err == nil {
			_, err = w.Write(field.data)
		}
		if err != nil {
			return nil, fmt.Errorf("encode the form: %w", err)
		}
	}
	if err := form.Close(); err != nil {
		return nil, fmt.Errorf("encode the form: %w", err)
	}
	return &body{all.Bytes(), form.FormDataContentType()}, nil
}

// query has what a profile is of. Times are whole seconds, that the profile is within.
func query(p *part) string {
	const second = 1_000_000_000
	from, until := p.start/second, (p.end+second-1)/second
	return url.Values{
		"name":    {seriesName(p.service)},
		"from":    {strconv.FormatUint(from, 10)},
		"until":   {strconv.FormatUint(max(until, from+1), 10)},
		"format":  {"pprof"},
		"spyName": {"labelprof"},
	}.Encode()
}

// seriesName is a service as a name without labels: what begins them ends a name.
func seriesName(service string) string {
	name := []byte(service)
	for i, c := range name {
		if c == '{' || c == '}' || c < ' ' || c == 0x7f {
			name[i] = '_'
		}
	}
	return string(name)
}

func (c *client) request(ctx context.Context, p *part, b *body) (*http.Request, error) {
	to := c.ingest
	to.RawQuery = query(p)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(b.bytes))
	if err != nil {
		return nil, err
	}
	// A transport must not send it again by itself.
	r.GetBody = nil
	r.Header.Set("Content-Type", b.contentType)
	r.Header.Set("User-Agent", "labelprof")
	if c.tenant != "" {
		r.Header.Set("X-Scope-OrgID", c.tenant)
	}
	switch s := c.secret; {
	case s.user != "":
		r.SetBasicAuth(s.user, s.token)
	case s.token != "":
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	return r, nil
}
