package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/pprof/profile"
)

// Pyroscope's limits: -validation.max-profile-size-bytes, -validation.max-profile-stacktrace-samples.
const (
	maxProfileBytes = 4 << 20 // unpacked
	maxSamples      = 16_000
	maxBodyBytes    = 8 << 20
)

// A Taken is one profile that the server has taken.
type Taken struct {
	Name, Tenant, Authorization string
	From, Until                 int64 // Unix seconds
	Metric                      string
	Profile                     *profile.Profile
}

// sameSeries reports whether another profile may have a series with equal labels and at the same time.
func (t *Taken) sameSeries(o Taken) bool {
	return t.Tenant == o.Tenant && t.Name == o.Name && t.Metric == o.Metric && t.Profile.TimeNanos == o.Profile.TimeNanos
}

// A Server is a handler for tests. It is safe for concurrent use.
type Server struct {
	mu      sync.Mutex
	taken   []Taken
	refused []string
}

// Taken returns what has been taken, in order.
func (s *Server) Taken() []Taken {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// Refused returns why requests were refused, in order.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	taken, err := take(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && slices.ContainsFunc(s.taken, taken.sameSeries) {
		err = errors.New("a profile of that service, metric and time was taken: of two Pyroscope would keep one")
	}
	if err != nil {
		s.refused = append(s.refused, err.Error())
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	s.taken = append(s.taken, *taken)
}

func take(r *http.Request) (*Taken, error) {
	if r.Method != http.MethodPost || r.URL.Path != "/ingest" {
		return nil, fmt.Errorf("%s %s is not POST /ingest", r.Method, r.URL.Path)
	}
	q := r.URL.Query()
	t := &Taken{Name: q.Get("name"), Tenant: r.Header.Get("X-Scope-OrgID"), Authorization: r.Header.Get("Authorization")}
	if t.Name == "" || strings.ContainsAny(t.Name, "{}") {
		return nil, fmt.Errorf("the name %q is none", t.Name)
	}
	if q.Get("format") != "pprof" {
		return nil, fmt.Errorf("the format is %q", q.Get("format"))
	}
	var err error
	if t.From, err = strconv.ParseInt(q.Get("from"), 10, 64); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if t.Until, err = strconv.ParseInt(q.Get("until"), 10, 64); err != nil {
		return nil, fmt.Errorf("until: %w", err)
	}
	if t.Until <= t.From {
		return nil, fmt.Errorf("until %d is not after from %d", t.Until, t.From)
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxBodyBytes)
	data, config, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	if t.Profile, err = profile.ParseData(data); err != nil {
		return nil, err
	}
	if err := t.check(config); err != nil {
		return nil, err
	}
	return t, nil
}

// A sampleType is an entry of the form field sample_type_config.
type sampleType struct {
	Units       string `json:"units"`
	Aggregation string `json:"aggregation"`
	DisplayName string `json:"display-name"`
	Sampled     bool   `json:"sampled"`
}

// bodyOf returns a profile, by itself or in a form, and what the form says of its values.
func bodyOf(r *http.Request) ([]byte, map[string]sampleType, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "multipart/form-data" {
		data, err := io.ReadAll(r.Body)
		return data, nil, err
	}
	if err := r.ParseMultipartForm(maxBodyBytes); err != nil {
		return nil, nil, err
	}
	field := func(name string) ([]byte, error) {
		file, _, err := r.FormFile(name)
		if err != nil {
			return nil, fmt.Errorf("form field %s: %w", name, err)
		}
		defer file.Close()
		return io.ReadAll(file)
	}
	data, err := field("profile")
	if err != nil {
		return nil, nil, err
	}
	text, err := field("sample_type_config")
	if err != nil {
		return nil, nil, err
	}
	config := map[string]sampleType{}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, nil, fmt.Errorf("sample_type_config: %w", err)
	}
	for name, c := range config {
		if !slices.Contains([]string{"samples", "objects", "bytes"}, c.Units) || !slices.Contains([]string{"sum", "average"}, c.Aggregation) || c.DisplayName == "" {
			return nil, nil, fmt.Errorf("sample_type_config: %s: %+v", name, c)
		}
	}
	return data, config, nil
}

// check checks a profile, and finds out what it is of.
func (t *Taken) check(config map[string]sampleType) error {
	p := t.Profile
	if err := p.CheckValid(); err != nil {
		return err
	}
	if len(p.Sample) == 0 {
		return errors.New("no samples")
	}
	if len(p.Sample) > maxSamples {
		return fmt.Errorf("%d samples, more than %d", len(p.Sample), maxSamples)
	}
	var size counter
	if err := p.WriteUncompressed(&size); err != nil {
		return err
	}
	if size > maxProfileBytes {
		return fmt.Errorf("%d bytes, more than %d", size, maxProfileBytes)
	}
	if start, end := t.From*1e9, t.Until*1e9; p.TimeNanos < start || p.TimeNanos+p.DurationNanos > end {
		return fmt.Errorf("the profile's time, %d and %d ns, is not within the request's", p.TimeNanos, p.DurationNanos)
	}
	for _, s := range p.Sample {
		if err := checkLabels(s); err != nil {
			return err
		}
	}
	t.Metric = metric(p, config)
	return nil
}

// metric is what a profile is of: of the first type with a word that Pyroscope knows, else of the
// last; types that are configured go by their display names.
func metric(p *profile.Profile, config map[string]sampleType) (name string) {
	known := []struct{ word, metric string }{
		{"cpu", "process_cpu"}, {"alloc_", "memory"}, {"inuse_", "memory"}, {"mutex_", "mutex"}, {"block_", "block"}, {"goroutines", "goroutines"},
	}
	for _, st := range p.SampleType {
		if name = st.Type; config[name].DisplayName != "" {
			name = config[name].DisplayName
		}
		for _, k := range known {
			if strings.Contains(name, k.word) {
				return k.metric
			}
		}
	}
	return name
}

// checkLabels checks the labels of a sample, which are those of a series besides the service's. Numbers are none.
func checkLabels(s *profile.Sample) error {
	found := Labels{}
	for name, values := range s.Label {
		for _, value := range values {
			if err := found.Add(name, value); err != nil {
				return err
			}
		}
	}
	if found["service_name"] != "" {
		return errors.New("a label service_name, which is the service's")
	}
	return nil
}

// counter counts what is written.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Sum adds up a value of the samples that have these labels, given as keys and values.
func (t *Taken) Sum(sampleType string, labels ...string) (sum int64) {
	at := slices.IndexFunc(t.Profile.SampleType, func(v *profile.ValueType) bool { return v.Type == sampleType })
	if at < 0 {
		return 0
	}
samples:
	for _, s := range t.Profile.Sample {
		for i := 0; i < len(labels); i += 2 {
			if !s.HasLabel(labels[i], labels[i+1]) {
				continue samples
			}
		}
		sum += s.Value[at]
	}
	return sum
}
