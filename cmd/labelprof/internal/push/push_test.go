// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/ingest"
)

const testToken = "glc_a-token-that-nobody-may-see"

// pushed runs the command.
func pushed(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = command.ExitCode("push", Run(context.Background(), args, &out, &errs), &errs)
	return code, out.String(), errs.String()
}

// fileOf writes profiles as a request of OTLP.
func fileOf(t *testing.T, profiles pprofile.Profiles) string {
	t.Helper()
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiles).MarshalProto()
	require.NoError(t, err)
	return written(t, data)
}

func written(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name
}

// serve runs a stand-in for Pyroscope.
func serve(t *testing.T) (*ingest.Server, string) {
	t.Helper()
	s := &ingest.Server{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// TestPush: each service is a profile, with labels, link and values as in the file.
func TestPush(t *testing.T) {
	s, url := serve(t)
	code, stdout, stderr := pushed("--server", url, "--tenant", "team-a", fileOf(t, profiletest.Tenants().Profiles))
	require.Zero(t, code, stderr)
	require.Empty(t, s.Refused())
	require.Empty(t, stderr)
	require.Equal(t, "sent to "+url+": 2 profiles of 2 services, 100 samples\n", stdout)
	taken := s.Taken()
	require.Len(t, taken, 2)
	require.Equal(t, "plain-service", taken[0].Name)
	require.EqualValues(t, 10, taken[0].Sum("samples"))
	w := taken[1]
	require.Equal(t, "writer-service", w.Name)
	require.Equal(t, "team-a", w.Tenant)
	require.Equal(t, "process_cpu", w.Metric)
	require.Empty(t, w.Authorization)
	require.EqualValues(t, 60, w.Sum("samples", "tenant", "acme"))
	require.EqualValues(t, 60*profiletest.PeriodNs, w.Sum("cpu", "tenant", "acme"))
	require.EqualValues(t, 30, w.Sum("samples", "tenant", "globex", "route", "/c"))
	require.EqualValues(t, 40, w.Sum("samples", "span_id", "0405000000000000"))
	require.EqualValues(t, 1, w.From)
	require.EqualValues(t, 6, w.Until)
}

// TestPushCutFile: what is before a cut is sent, and that is not all.
func TestPushCutFile(t *testing.T) {
	var frames bytes.Buffer
	for range 2 {
		_, err := otlp.AppendFrame(&frames, profiletest.Tenants().Profiles)
		require.NoError(t, err)
	}
	s, url := serve(t)
	code, stdout, stderr := pushed("--server", url, written(t, frames.Bytes()[:frames.Len()-3]))
	require.Equal(t, command.ExitError, code)
	require.Regexp(t, `^labelprof push: read .*: the file ends within request 2, .*\n$`, stderr)
	require.Equal(t, "sent to "+url+": 2 profiles of 2 services, 100 samples\n", stdout)
	require.Len(t, s.Taken(), 2)

	s, url = serve(t)
	code, stdout, stderr = pushed("--server", url, written(t, frames.Bytes()[:100]))
	require.Equal(t, command.ExitError, code)
	require.Regexp(t, `^labelprof push: read .*: the file ends within request 1, .*\nno samples\n$`, stderr)
	require.Empty(t, stdout)
	require.Empty(t, s.Taken())
}

// TestPushPprof: a pprof file goes as well, under the name that is given.
func TestPushPprof(t *testing.T) {
	f := &profile.Function{ID: 1, Name: "main"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1000,
		Sample: []*profile.Sample{
			{Location: []*profile.Location{l}, Value: []int64{3, 3000}, Label: map[string][]string{"tenant": {"acme"}}},
			{Location: []*profile.Location{l}, Value: []int64{4, 4000}, Label: map[string][]string{"service.name": {"shop{a}"}}},
			{Location: []*profile.Location{l}, Value: []int64{5, 5000}, Label: map[string][]string{"process.executable.name": {"bash"}}},
		},
		Location: []*profile.Location{l}, Function: []*profile.Function{f},
	}
	var packed bytes.Buffer
	require.NoError(t, p.Write(&packed))
	name := written(t, packed.Bytes())
	for given, want := range map[string]string{"": "shop_a_ unknown_service unknown_service:bash", "cron": "cron shop_a_"} {
		s, url := serve(t)
		before := time.Now().Unix()
		code, _, stderr := pushed("--server", url, "--service", given, name)
		require.Zero(t, code, stderr)
		var names []string
		for _, one := range s.Taken() {
			names = append(names, one.Name)
			require.GreaterOrEqual(t, one.From, before, "a file without a time is of now")
			require.Zero(t, one.Sum("samples", "service.name", "shop{a}"), "the service is the name")
		}
		require.Equal(t, want, strings.Join(names, " "))
	}
}

// TestPushResource: samples go under the service of their resource, whatever their labels say;
// a label is the name only where the resource has none.
func TestPushResource(t *testing.T) {
	b := profiletest.New().Process(7, "writer")
	b.Sample(1, []string{"f"}, "service.name", "mine", "tenant", "acme")
	b.Sample(2, []string{"f"}, sample.LabelPrefix+"service.name", "mine")
	b.Process(8, "plain").Sample(4, []string{"f"}, "service.name", "labelled")
	b.Profiles.ResourceProfiles().At(1).Resource().Attributes().PutStr("service.name", "")
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, fileOf(t, b.Profiles))
	require.Zero(t, code, stderr)
	sums := map[string]int64{}
	for _, one := range s.Taken() {
		sums[one.Name] += one.Sum("samples")
	}
	require.Equal(t, map[string]int64{"writer-service": 3, "labelled": 4}, sums)
}

// TestPushResourceLabels: what else the resource says is labels, which --omit leaves out.
func TestPushResourceLabels(t *testing.T) {
	b := profiletest.New().Process(7, "writer")
	b.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutStr("host.name", "a")
	b.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutStr("container.id", "c")
	b.Sample(1, []string{"f"}, "tenant", "acme")
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, "--omit", "container.id", fileOf(t, b.Profiles))
	require.Zero(t, code, stderr)
	require.Equal(t, "writer-service", s.Taken()[0].Name)
	require.Equal(t, map[string][]string{
		"tenant": {"acme"}, "host_name": {"a"}, "process_executable_name": {"writer"},
	}, s.Taken()[0].Profile.Sample[0].Label, "the service is the name")
}

// TestPushNames: labels have names that Pyroscope takes, and no two of a sample have one; what gives way is counted.
func TestPushNames(t *testing.T) {
	b := profiletest.New().Process(7, "writer")
	b.Sample(1, []string{"f"}, sample.LabelPrefix+"span id", "1", "output-level", "2", "2xx", "3", "a.b", "4", "a_b", "5", "__name__", "6",
		"service_name", "7", sample.LabelPrefix+"service_name", "8", "process_executable_name", "9")
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, fileOf(t, b.Profiles))
	require.Zero(t, code, stderr)
	require.Empty(t, s.Refused())
	require.Equal(t, "3 labels not sent: another one has the key, or it has no value\n", stderr)
	require.Equal(t, map[string][]string{
		"span_id": {"1"}, "output_level": {"2"}, "_2xx": {"3"}, "a_b": {"4"}, "_name__": {"6"},
		"process_context_label_service_name": {"8"}, "process_executable_name": {"writer"},
	}, s.Taken()[0].Profile.Sample[0].Label)
}

// TestPushOffCPU: time off the CPU goes by itself, with what it is.
func TestPushOffCPU(t *testing.T) {
	b := profiletest.Absences()
	b.Absence(sample.MaxNs+1, "sleep")
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, fileOf(t, b.Profiles), fileOf(t, profiletest.Tenants().Profiles))
	require.Zero(t, code, stderr)
	require.Empty(t, s.Refused())
	require.Equal(t, "1 times of more than 13 days cut to that: sums are too small\n", stderr)
	metrics := map[string]int64{}
	for _, one := range s.Taken() {
		metrics[one.Metric] += one.Sum("samples")
		if one.Metric == "off_processor" {
			require.NotZero(t, one.Sum("off_cpu"))
			require.Zero(t, one.Sum("cpu"))
		}
	}
	require.Len(t, metrics, 2)
	require.EqualValues(t, 100, metrics["process_cpu"])
	require.NotZero(t, metrics["off_processor"])
}

// TestPushParts: what Pyroscope would refuse as too large goes as several profiles, and
// nothing is lost.
func TestPushParts(t *testing.T) {
	b := profiletest.New().Process(7, "many")
	const labels, hits = 20_000, 2
	for i := range labels {
		b.Sample(hits, []string{"f"}, "tenant", fmt.Sprintf("%s%d", strings.Repeat("t", 100), i))
	}
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, fileOf(t, b.Profiles))
	require.Zero(t, code, stderr)
	require.Empty(t, s.Refused())
	require.Greater(t, len(s.Taken()), 2)
	sum := int64(0)
	for _, one := range s.Taken() {
		sum += one.Sum("samples")
	}
	require.EqualValues(t, labels*hits, sum)
	// Each at a time of its own, or one would take the place of another; all within the time of the file.
	times := map[int64]bool{}
	for _, one := range s.Taken() {
		times[one.Profile.TimeNanos] = true
		require.GreaterOrEqual(t, one.Profile.TimeNanos, int64(1e9))
		require.EqualValues(t, 6e9, one.Profile.TimeNanos+one.Profile.DurationNanos)
	}
	require.Len(t, times, len(s.Taken()))
}

// TestPushTimes: samples go at the time at which they were taken, hours of one file, or several files, not as one
// profile of its beginning.
func TestPushTimes(t *testing.T) {
	const s = uint64(time.Second)
	var sent []*part
	g := newGatherer(&settings{}, func(p *part) error { sent = append(sent, p); return nil }, func() {})
	batch := func(start uint64) {
		g.take(func(visit func(*sample.Sample)) sample.Batch {
			visit(&sample.Sample{Hits: 1, Process: &sample.Process{}, Stack: []*sample.Location{{Address: 1}}})
			return sample.Batch{StartNs: start, EndNs: start + 5*s}
		})
	}
	for _, start := range []uint64{100, 105, 110, 115, 120, 200, 195, 100} {
		batch(start * s)
	}
	g.flush()
	var times [][3]int64
	for _, p := range sent {
		made := p.profile.Profile()
		times = append(times, [3]int64{made.TimeNanos / int64(s), (made.TimeNanos + made.DurationNanos) / int64(s), p.samples})
	}
	require.Equal(t, [][3]int64{{100, 115, 3}, {115, 125, 2}, {195, 205, 2}, {100, 105, 1}}, times)
}

// TestPushPartsOfNoTime: parts of a file that tells no time have times of their own, and none ends before it begins.
func TestPushPartsOfNoTime(t *testing.T) {
	var sent []*part
	g := newGatherer(&settings{}, func(p *part) error { sent = append(sent, p); return nil }, func() {})
	g.now = func() time.Time { return time.Unix(7, 999_999_999) }
	for range 3 {
		g.take(func(visit func(*sample.Sample)) sample.Batch {
			visit(&sample.Sample{Hits: 1, Process: &sample.Process{}, Stack: []*sample.Location{{Address: 1}}})
			return sample.Batch{}
		})
		g.flush()
	}
	require.Len(t, sent, 3)
	for i, p := range sent {
		require.EqualValues(t, 7_999_999_999+i, p.profile.Profile().TimeNanos)
		require.Zero(t, p.profile.Profile().DurationNanos)
		require.Contains(t, query(p), "from="+fmt.Sprint(7+min(i, 1)))
		require.Contains(t, query(p), "until="+fmt.Sprint(8+min(i, 1)))
	}
}

// TestPushManyServices: a part has its share of the bound, however little is in it.
func TestPushManyServices(t *testing.T) {
	sent := 0
	g := newGatherer(&settings{}, func(*part) error { sent++; return nil }, func() {})
	const services = gatheredBytes / emptyPartBytes
	g.take(func(visit func(*sample.Sample)) sample.Batch {
		for i := range services {
			visit(&sample.Sample{Hits: 1, Process: &sample.Process{Attributes: []sample.Attribute{{Key: keyService, Text: fmt.Sprint(i)}}}})
		}
		return sample.Batch{}
	})
	require.Positive(t, sent)
	g.flush()
	require.Equal(t, services, sent)
	require.Zero(t, g.bytes)
}

// TestPushZero: a number that is 0 is not sent, nor is a label that would take its name.
func TestPushZero(t *testing.T) {
	s, url := serve(t)
	root := profiletest.New().Process(7, "evil")
	root.Profiles.ResourceProfiles().At(0).Resource().Attributes().PutInt("process.real_user.id", 0)
	root.Sample(3, []string{"f"}, sample.LabelPrefix+"process.real_user.id", "1000")
	code, _, stderr := pushed("--server", url, fileOf(t, root.Profiles))
	require.Zero(t, code, stderr)
	for _, one := range s.Taken()[0].Profile.Sample {
		require.NotContains(t, one.Label, "process_real_user_id")
		require.NotContains(t, one.NumLabel, "process_real_user_id")
	}
}

// TestPushOmit: a label that is not wanted is not sent, and nothing else changes.
func TestPushOmit(t *testing.T) {
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, "--omit", "trace_id,route", fileOf(t, profiletest.Tenants().Profiles))
	require.Zero(t, code, stderr)
	w := s.Taken()[1]
	require.EqualValues(t, 60, w.Sum("samples", "tenant", "acme"))
	require.EqualValues(t, 40, w.Sum("samples", "span_id", "0405000000000000"))
	for _, one := range w.Profile.Sample {
		require.NotContains(t, one.Label, "trace_id")
		require.NotContains(t, one.Label, "route")
	}
}

// TestPushOmitProcess: what the resource says of the process is left out as labels are, each
// by its own key.
func TestPushOmitProcess(t *testing.T) {
	for omit, want := range map[string]string{"process.pid": "process_executable_name", "process.executable.name": "process_pid"} {
		s, url := serve(t)
		code, _, stderr := pushed("--server", url, "--omit", omit, fileOf(t, profiletest.Tenants().Profiles))
		require.Zero(t, code, stderr)
		require.Len(t, s.Taken(), 2)
		for _, one := range s.Taken() {
			for _, entry := range one.Profile.Sample {
				var keys []string
				for key := range entry.Label {
					keys = append(keys, key)
				}
				for key := range entry.NumLabel {
					keys = append(keys, key)
				}
				require.NotContains(t, keys, labelName(omit))
				require.Contains(t, keys, want)
			}
		}
	}
}

// TestPushSecret: the token is in the header and nowhere else, whatever the server says.
func TestPushSecret(t *testing.T) {
	file := fileOf(t, profiletest.Tenants().Profiles)
	var got atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		w.Header().Set("Location", "http://elsewhere/?"+r.Header.Get("Authorization"))
		w.WriteHeader(map[string]int{"": http.StatusForbidden, "moved": http.StatusTemporaryRedirect}[r.Header.Get("X-Scope-OrgID")])
		fmt.Fprint(w, r.Header)
	}))
	defer server.Close()
	t.Setenv(envToken, testToken)
	for _, tc := range []struct{ user, tenant, want string }{
		{"", "", "Bearer " + testToken}, {"", "moved", "Bearer " + testToken}, {"42", "", "Basic "},
	} {
		t.Setenv(envUser, tc.user)
		code, stdout, stderr := pushed("--server", server.URL, "--tenant", tc.tenant, file)
		require.Equal(t, command.ExitError, code)
		require.Contains(t, got.Load(), tc.want)
		require.NotContains(t, stdout+stderr, testToken)
		require.NotContains(t, stdout+stderr, strings.TrimPrefix(got.Load().(string), "Basic "))
		require.Contains(t, stderr, "[token]")
	}
	s := secret{"user", testToken}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", s, s, s, s), testToken)
}

// TestPushUsage: what cannot be meant is refused before anything is sent.
func TestPushUsage(t *testing.T) {
	file := fileOf(t, profiletest.Tenants().Profiles)
	for _, args := range [][]string{{}, {"--timeout", "0s", file}, {"--patience", "-1s", file}, {"--max-memory", "0", file}, {"--omit", "", file}} {
		code, _, stderr := pushed(args...)
		require.Equal(t, command.ExitUsage, code, "%q", args)
		require.NotEmpty(t, stderr)
	}
	for want, server := range map[string]string{
		"is no URL of http": "pyroscope:4040",
		"has a user in it":  "https://u:p@pyroscope",
		"more than a host":  "https://pyroscope?x=1",
	} {
		code, _, stderr := pushed("--server", server, file)
		require.Equal(t, command.ExitUsage, code, server)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, server)
	}
	for want, args := range map[string][]string{
		"--tenant is one line":   {"--server", "https://pyroscope", "--tenant", "a\nb"},
		"of use with https only": {"--server", "http://127.0.0.1:1", "--ca-file", file},
	} {
		code, _, stderr := pushed(append(args, file)...)
		require.Equal(t, command.ExitUsage, code, "%q", args)
		require.Contains(t, stderr, want)
	}
	t.Setenv(envToken, testToken)
	for want, args := range map[string][]string{
		"goes over https":          {"--server", "http://pyroscope:4040"},
		"it has no certificate":    {"--server", "https://127.0.0.1:1", "--ca-file", file},
		"no such file":             {"--server", "https://127.0.0.1:1", "--ca-file", file + "x"},
		"open " + file + "missing": {"--server", "http://127.0.0.1:1", file + "missing"},
	} {
		code, _, stderr := pushed(append(args, file)...)
		require.Equal(t, command.ExitError, code, "%q", args)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, testToken)
	}
	t.Setenv(envToken, "two\nlines")
	_, _, stderr := pushed("--server", "https://pyroscope", file)
	require.Contains(t, stderr, "one line each")
	t.Setenv(envToken, "")
	t.Setenv(envUser, "42")
	_, _, stderr = pushed("--server", "https://pyroscope", file)
	require.Contains(t, stderr, "LABELPROF_PUSH_TOKEN is not")
	t.Setenv(envUser, "")
	code, _, stderr := pushed(written(t, nil))
	require.Equal(t, command.ExitError, code)
	require.Contains(t, stderr, command.ErrNoSamples.Error())
}

// TestPushTLS: a server is believed by the certificates of the file, or by the system's.
func TestPushTLS(t *testing.T) {
	s := &ingest.Server{}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	file := fileOf(t, profiletest.Tenants().Profiles)
	root := written(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	t.Setenv(envToken, testToken)
	start := time.Now()
	code, _, stderr := pushed("--server", server.URL, file)
	require.Equal(t, command.ExitError, code)
	require.Contains(t, stderr, "certificate")
	require.Less(t, time.Since(start), 30*time.Second, "is not tried again")
	require.Empty(t, s.Taken())
	code, _, stderr = pushed("--server", server.URL, "--ca-file", root, file)
	require.Zero(t, code, stderr)
	require.Len(t, s.Taken(), 2)
	require.Equal(t, "Bearer "+testToken, s.Taken()[0].Authorization)
}

// TestPushStops: at the first request that is refused nothing more is read or sent, and what
// was sent is said.
func TestPushStops(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) > 1 {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	}))
	defer server.Close()
	file := fileOf(t, profiletest.Tenants().Profiles)
	code, stdout, stderr := pushed("--server", server.URL, file, file)
	require.Equal(t, command.ExitError, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "send a profile of writer-service: status 422")
	require.Contains(t, stderr, "sent before that: 1 profiles of 1 services, 20 samples")
	require.EqualValues(t, 2, n.Load())
}

// TestPushStopsGathering: of a file that is sent in parts, none follows one that was refused.
func TestPushStopsGathering(t *testing.T) {
	b := profiletest.New().Process(7, "many")
	for i := range 2*partSamples + 1 {
		b.Sample(1, []string{"f"}, "tenant", fmt.Sprint(i))
	}
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.WriteHeader(http.StatusUnprocessableEntity)
	}))
	defer server.Close()
	g := newGatherer(&settings{}, func(p *part) error { return clientOf(t, server.URL).send(t.Context(), p) }, func() {})
	g.Consume(b.Profiles)
	require.ErrorContains(t, g.err, "status 422")
	require.EqualValues(t, 1, n.Load())
}

// TestPushLongNames: a service with a longer name than is sent has the beginning of it, and
// its samples are counted.
func TestPushLongNames(t *testing.T) {
	b := profiletest.New().Process(7, strings.Repeat("n", 2*nameBytes))
	b.Sample(1, []string{"f"}, "tenant", "acme")
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, fileOf(t, b.Profiles))
	require.Zero(t, code, stderr)
	require.Len(t, s.Taken(), 1)
	require.Contains(t, stderr, "1 samples of services with names of more than 256 bytes, which were cut")
}

// TestPushInterrupted: a signal ends the reading, and nothing that is gathered goes.
func TestPushInterrupted(t *testing.T) {
	s, url := serve(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))
	var stdout, stderr bytes.Buffer
	err := Run(ctx, []string{"--server", url, fileOf(t, profiletest.Tenants().Profiles)}, &stdout, &stderr)
	require.EqualError(t, err, "interrupt signal received")
	require.Empty(t, s.Taken())
}
