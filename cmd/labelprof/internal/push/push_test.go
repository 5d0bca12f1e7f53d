// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
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

// TestPushOffCPU: time off the CPU goes by itself, with what it is.
func TestPushOffCPU(t *testing.T) {
	b := profiletest.Absences()
	s, url := serve(t)
	code, _, stderr := pushed("--server", url, fileOf(t, b.Profiles), fileOf(t, profiletest.Tenants().Profiles))
	require.Zero(t, code, stderr)
	require.Empty(t, s.Refused())
	metrics := map[string]int64{}
	for _, one := range s.Taken() {
		metrics[one.Metric] += one.Sum("samples")
		if one.Metric == "off_cpu" {
			require.NotZero(t, one.Sum("off_cpu"))
			require.Zero(t, one.Sum("cpu"))
		}
	}
	require.Len(t, metrics, 2)
	require.EqualValues(t, 100, metrics["process_cpu"])
	require.NotZero(t, metrics["off_cpu"])
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
	t.Setenv(envToken, testToken)
	for want, args := range map[string][]string{
		"is no URL of http":        {"--server", "pyroscope:4040"},
		"has a user in it":         {"--server", "https://u:p@pyroscope"},
		"more than a host":         {"--server", "https://pyroscope?x=1"},
		"goes over https":          {"--server", "http://pyroscope:4040"},
		"one line each":            {"--server", "https://pyroscope", "--tenant", "a\nb"},
		"of use with https only":   {"--server", "http://127.0.0.1:1", "--ca-file", file},
		"it has no certificate":    {"--server", "https://127.0.0.1:1", "--ca-file", file},
		"no such file":             {"--server", "https://127.0.0.1:1", "--ca-file", file + "x"},
		"open " + file + "missing": {"--server", "http://127.0.0.1:1", file + "missing"},
	} {
		code, _, stderr := pushed(append(args, file)...)
		require.Equal(t, command.ExitError, code, "%q", args)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, testToken)
	}
	t.Setenv(envToken, "")
	t.Setenv(envUser, "42")
	_, _, stderr := pushed("--server", "https://pyroscope", file)
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

// clientOf is a client that does not wait.
func clientOf(t *testing.T, server string) *client {
	t.Helper()
	c, err := newClient(&settings{server: server, timeout: 2 * time.Second, patience: 10 * time.Second}, secret{})
	require.NoError(t, err)
	c.wait = func(int) time.Duration { return time.Millisecond }
	return c
}

// partOf is a part with one sample.
func partOf() *part {
	p := newPart(partKey{service: "shop"}, &sample.Batch{StartNs: 1e9, EndNs: 2e9})
	p.profile.Span(1e9, 2e9)
	p.profile.Add(&sample.Sample{Hits: 1, Ns: 1, PeriodNs: 1, Process: &sample.Process{}, Stack: []*sample.Location{{Address: 1}}})
	return p
}

// TestSend: what a busy server has not taken is sent again, what it refuses is not, and no
// number of answers makes it go on for ever.
func TestSend(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []int // the last one goes on
		tries   int64
		err     string
	}{
		"taken":             {[]int{200}, 1, ""},
		"no content":        {[]int{204}, 1, ""},
		"busy":              {[]int{429, 503, 500, 200}, 4, ""},
		"always busy":       {[]int{503}, maxTries, "status 503: no text (the last of 12 tries)"},
		"refused":           {[]int{422}, 1, "status 422"},
		"bad":               {[]int{400}, 1, "status 400"},
		"not allowed":       {[]int{401}, 1, "not allowed"},
		"too large":         {[]int{413}, 1, "too large"},
		"not there":         {[]int{404}, 1, "status 404"},
		"never":             {[]int{501}, 1, "status 501"},
		"nobody knows":      {[]int{504}, 1, "status 504"},
		"moved":             {[]int{301}, 1, "it is elsewhere"},
		"busy, then refuse": {[]int{502, 422}, 2, "status 422"},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(tc.answers[min(int(n.Add(1)), len(tc.answers))-1])
			}))
			defer server.Close()
			err := clientOf(t, server.URL).send(t.Context(), partOf())
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
			}
			require.Equal(t, tc.tries, n.Load())
		})
	}
}

// TestSendPatience: patience bounds the time, also where the server asks for more.
func TestSendPatience(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header().Set("Retry-After", "4000000000")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c := clientOf(t, server.URL)
	require.ErrorContains(t, c.send(t.Context(), partOf()), "status 503")
	require.EqualValues(t, 1, n.Load(), "15 s are more than patience")
	require.Equal(t, maxWait, retryAfter("4000000000"))
	require.Equal(t, 3*time.Second, retryAfter("3"))
	require.Zero(t, retryAfter("-3"))
	require.Zero(t, retryAfter("soon"))
	require.Zero(t, retryAfter("Sun, 06 Nov 1994 08:49:37 GMT"))
	for n := 1; n < 100; n++ {
		require.LessOrEqual(t, backoff(n), maxWait)
		require.GreaterOrEqual(t, backoff(n), minWait/2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.wait = func(int) time.Duration { cancel(); return time.Second }
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	require.ErrorIs(t, c.send(ctx, partOf()), context.Canceled)
}

// TestSendWithoutServer: where nobody listens, it is tried again.
func TestSendWithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	s := &ingest.Server{}
	c := clientOf(t, "http://"+address)
	tries := 0
	c.wait = func(int) time.Duration {
		if tries++; tries == 2 {
			l, err := net.Listen("tcp", address)
			require.NoError(t, err)
			go func() { _ = http.Serve(l, s) }() //nolint:gosec // of a test
			t.Cleanup(func() { l.Close() })
		}
		return time.Millisecond
	}
	require.NoError(t, c.send(t.Context(), partOf()))
	require.Len(t, s.Taken(), 1)
	require.Equal(t, 2, tries)
}

// TestSendHostile: answers that break off, never come, are huge or act upon terminals end in
// an error or in nothing, and nothing is sent twice.
func TestSendHostile(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		err    string
	}{
		"no answer":          {"", "nobody knows"},
		"half a status":      {"HTTP/1.1 20", "nobody knows"},
		"no HTTP":            {"SSH-2.0-OpenSSH_9.2\r\n", "nobody knows"},
		"endless headers":    {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 4<<20), "nobody knows"},
		"truncated, taken":   {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhal", ""},
		"truncated, refused": {"HTTP/1.1 422 No\r\nContent-Length: 100\r\n\r\nhal", "status 422: hal"},
		"web page":           {"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 6\r\n\r\n<html>", "web page"},
		"terminal":           {"HTTP/1.1 400 No\r\nContent-Length: 8\r\n\r\n\x1b[2J\xff\u202e", `status 400: \x1b[2J?\u202e`},
		"huge":               {"HTTP/1.1 400 No\r\n\r\n" + strings.Repeat("y", 8<<20), "status 400: " + strings.Repeat("y", shownBytes) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			var n atomic.Int64
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					n.Add(1)
					_, _ = conn.Read(make([]byte, 1<<16))
					_, _ = io.WriteString(conn, tc.answer)
					conn.Close()
				}
			}()
			err = clientOf(t, "http://"+l.Addr().String()).send(t.Context(), partOf())
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
				require.Less(t, len(err.Error()), 1000)
			}
			require.EqualValues(t, 1, n.Load())
		})
	}
}

// TestSendSilent: a server that says nothing costs a timeout, and nothing is sent twice.
func TestSendSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := clientOf(t, "http://"+l.Addr().String())
	c.timeout = 100 * time.Millisecond
	require.ErrorContains(t, c.send(t.Context(), partOf()), "nobody knows")
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

// TestSendElsewhere: a profile, and the token, go to the server that was named and no other.
func TestSendElsewhere(t *testing.T) {
	s, url := serve(t)
	server := httptest.NewServer(http.RedirectHandler(url+"/ingest?"+query(partOf()), http.StatusFound))
	defer server.Close()
	require.ErrorContains(t, clientOf(t, server.URL).send(t.Context(), partOf()), "it is elsewhere")
	require.Empty(t, s.Taken())
	p := partOf()
	p.end = 2e9 + 1
	require.Contains(t, query(p), "until=3")
}

// TestSendReset: a connection that breaks is no word that the profile was not taken.
func TestSendReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var n atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.Add(1)
			_, _ = conn.Read(make([]byte, 1<<16))
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}()
	require.ErrorContains(t, clientOf(t, "http://"+l.Addr().String()).send(t.Context(), partOf()), "nobody knows")
	require.EqualValues(t, 1, n.Load())
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
