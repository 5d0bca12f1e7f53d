//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/ingest"
)

// backendsChanges are merged over the documented configurations: batches come soon, and the
// same profiles go over HTTP, too: as the documented exporter does, and without the middleware.
// A key with "::" is only for the first level: further in, the collector takes it or what it is
// merged over, as it happens.
const backendsChanges = `
receivers:
  custom_labels: {samples_per_second: 97, report_interval: 1s, max_memory_bytes: 4294967296}
exporters:
  otlp_http: {endpoint: "http://%[1]s", middlewares: [{id: inline_strings}]}
  otlp_http/references: {endpoint: "http://%[1]s/references", compression: none}
  %[2]s: {timeout: 30s}
service:
  pipelines: {profiles: {exporters: [%[2]s, otlp_http, otlp_http/references]}}
  telemetry: {logs: {encoding: json}, metrics: {level: none}}
`

// TestBackends runs the built collector with the configurations for Pyroscope and Parca, and
// reads the bytes that it sends as these backends do (proto 1.10): nothing that they refuse or
// lose, each sample over each way, labels, functions and spans right; for Pyroscope also labels of a
// name that it would refuse. They refuse what it sends without the extension inline_strings. Then `labelprof push` sends the same to Pyroscope's
// /ingest.
func TestBackends(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	testutil.Start(t, "writer-v1-lib", "shares", "--seconds", "300")
	testutil.Start(t, "writer-ctx-lib", "spin", "--labels", "2", "--seconds", "300")
	var captured [][]byte
	t.Run("parca", func(t *testing.T) { testBackend(t, "parca", 0) })
	t.Run("pyroscope", func(t *testing.T) {
		workOddly(t)
		captured = testBackend(t, "pyroscope", 5)
	})
	t.Run("push", func(t *testing.T) { testBackendPush(t, captured) })
}

// workOddly has this process work, until the test ends, with a label that only has a name for Pyroscope where it is
// given one.
func workOddly(t *testing.T) {
	go pprof.Do(t.Context(), pprof.Labels("odd name", "yes"), func(ctx context.Context) {
		for ctx.Err() == nil {
			for began := time.Now(); time.Since(began) < 5*time.Millisecond; {
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

func testBackend(t *testing.T, backend string, odd int) [][]byte {
	c := startCapture(t)
	exporter := "otlp_grpc/" + backend
	changes := filepath.Join(t.TempDir(), "changes.yaml")
	require.NoError(t, os.WriteFile(changes, fmt.Appendf(nil, backendsChanges, c.http, exporter), 0o600))
	col := &collector{child: startChild(t, []string{strings.ToUpper(backend) + "=" + c.grpc, "HOST_NAME=here"}, collectorProgram,
		"--config", "../../examples/"+backend+".yaml", "--config", changes, "--feature-gates=service.profilesSupport"), changes: changes}
	col.awaitLine(collectorReady)
	enough := size(400, 100, 50)
	col.await("labelled samples and spans", func() bool {
		var seen backendTotals
		for _, data := range c.requests("grpc") {
			seen.add(readAsBackend(data))
		}
		return seen.spans >= enough && seen.tenants["acme"] >= enough && seen.odd >= odd &&
			len(c.requests("http")) > 0 && len(c.requests("references")) > 0
	})
	col.stop()

	var grpc backendTotals
	for _, data := range c.requests("grpc") {
		grpc.add(readAsBackend(data))
	}
	require.Empty(t, grpc.refused, "gRPC")
	require.Empty(t, grpc.wrong, "gRPC")
	var proto backendTotals
	for _, data := range c.requests("http") {
		proto.add(readAsBackend(data))
	}
	require.Empty(t, proto.refused, "HTTP")
	require.Equal(t, grpc, proto, "the same over HTTP; requests: %v", c.counts())
	for _, data := range c.requests("references") {
		require.Contains(t, fmt.Sprint(readAsBackend(data).refused), "an attribute with an empty key", "without the extension")
	}
	requireNothingLost(t, col.accounts(), grpc.samples)
	fmt.Printf("%-9s %d samples over gRPC and HTTP each, none refused; with tenant %v; %d with span_id; %d services, %d of them unknown_service\n",
		backend, grpc.samples, grpc.tenants, grpc.spans, len(grpc.services), grpc.unknown())
	return c.requests("grpc")
}

// backendTotals are what requests have.
type backendTotals struct {
	samples, spans int
	odd            int // with the label of workOddly
	tenants        map[string]int
	services       map[string]int
	profiles       map[backendProfile]int
	refused        []string
	wrong          []string
}

func (b *backendTotals) add(r *backendRequest) {
	if b.tenants == nil {
		b.tenants, b.services, b.profiles = map[string]int{}, map[string]int{}, map[backendProfile]int{}
	}
	b.refused = append(b.refused, r.refused...)
	for _, p := range r.profiles {
		if b.profiles[p]++; b.profiles[p] == 2 {
			b.refused = append(b.refused, fmt.Sprintf("two profiles of %s begin at %d", p.service, p.start))
		}
	}
	for i := range r.samples {
		s := &r.samples[i]
		b.samples += s.count
		b.services[s.service] += s.count
		if s.label("odd_name") == "yes" {
			b.odd += s.count
		}
		if tenant := s.label("tenant"); tenant != "" {
			if routes, known := tenantRoutes[tenant]; known { // other tests' programs have other tenants
				b.tenants[tenant] += s.count
				b.check(slices.Contains(routes, s.label("route")), s, "labels of different sets")
			}
			for _, f := range s.functions {
				if runs, ok := tenantFunctions[f]; ok {
					b.check(runs == tenant, s, "the function of another tenant")
				}
			}
		}
		switch {
		case strings.Trim(s.trace+s.span, "0") == "":
			b.check(s.labels["trace_id"]+s.labels["span_id"] == "", s, "ids without a link")
		default:
			b.check(s.labels["trace_id"] == s.trace && s.labels["span_id"] == s.span && len(s.trace) == 32 && len(s.span) == 16, s, "ids that are not the link's")
			b.spans += s.count
		}
	}
}

func (b *backendTotals) check(ok bool, s *backendSample, what string) {
	if !ok && len(b.wrong) < 20 {
		b.wrong = append(b.wrong, fmt.Sprintf("%s: %+v", what, *s))
	}
}

func (b *backendTotals) unknown() (n int) {
	for name := range b.services {
		if strings.HasPrefix(name, "unknown_service") {
			n++
		}
	}
	return n
}

// testBackendPush sends what was captured to a stand-in for Pyroscope's /ingest, from a file.
func testBackendPush(t *testing.T, requests [][]byte) {
	var file []byte
	var want backendTotals
	for _, data := range requests {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(data))), data...)
		want.add(readAsBackend(data))
	}
	name := filepath.Join(t.TempDir(), "profiles.otlp")
	require.NoError(t, os.WriteFile(name, file, 0o600))
	pyroscope := &ingest.Server{}
	server := httptest.NewServer(pyroscope)
	defer server.Close()
	push := startChild(t, nil, labelprofProgram, "push", "--server", server.URL, "--tenant", "team-a", name)
	<-push.ended
	require.NoError(t, push.err, push.stderr.String())
	require.Empty(t, pyroscope.Refused())
	want.profiles = nil
	for name, n := range want.services { // of other tests' programs, too, which are called anything
		if sent := strings.NewReplacer("\n", "_", "{", "_", "}", "_").Replace(name); sent != name {
			delete(want.services, name)
			want.services[sent] += n
		}
	}
	got := backendTotals{tenants: map[string]int{}, services: map[string]int{}}
	for _, p := range pyroscope.Taken() {
		require.Equal(t, "team-a", p.Tenant)
		require.Equal(t, "process_cpu", p.Metric)
		all := int(p.Sum("samples"))
		got.samples += all
		got.services[p.Name] += all
		got.odd += int(p.Sum("samples", "odd_name", "yes"))
		for _, s := range p.Profile.Sample {
			if len(s.Label["span_id"]) == 1 && len(s.Label["span_id"][0]) == 16 {
				got.spans += int(s.Value[0])
			}
		}
		for _, tenant := range tenantNames {
			if n := int(p.Sum("samples", "tenant", tenant)); n > 0 {
				got.tenants[tenant] += n
			}
		}
	}
	require.Equal(t, want, got)
	fmt.Printf("push: %s", push.stdout.String())
}

// TestBackendsNotice: the reading of requests notices what backends refuse or lose: requests
// of today's pdata, and each fault by itself.
func TestBackendsNotice(t *testing.T) {
	valid := func() pprofile.Profiles {
		p := pprofile.NewProfiles()
		d := p.Dictionary()
		d.StringTable().Append("", "samples", "count", "cpu", "nanoseconds", "tenant", "main")
		d.MappingTable().AppendEmpty()
		d.LocationTable().AppendEmpty()
		d.LocationTable().AppendEmpty().Lines().AppendEmpty().SetFunctionIndex(1)
		d.FunctionTable().AppendEmpty()
		d.FunctionTable().AppendEmpty().SetNameStrindex(6)
		d.LinkTable().AppendEmpty()
		d.AttributeTable().AppendEmpty()
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(5)
		a.Value().SetStr("acme")
		d.StackTable().AppendEmpty()
		d.StackTable().AppendEmpty().LocationIndices().Append(1)
		rp := p.ResourceProfiles().AppendEmpty()
		rp.Resource().Attributes().PutStr("service.name", "shop")
		rp.Resource().Attributes().PutInt("process.pid", 7)
		one := rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		one.SampleType().SetTypeStrindex(1)
		one.SampleType().SetUnitStrindex(2)
		one.PeriodType().SetTypeStrindex(3)
		one.PeriodType().SetUnitStrindex(4)
		one.SetPeriod(1)
		one.SetTime(77)
		s := one.Samples().AppendEmpty()
		s.SetStackIndex(1)
		s.AttributeIndices().Append(1)
		s.TimestampsUnixNano().Append(1, 2)
		return p
	}
	inPlace := func(p pprofile.Profiles) []byte {
		// What pdata does not write any more, ours has to be able to tell from what it does.
		data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
		require.NoError(t, err)
		return resolvedWire(t, data)
	}
	r := readAsBackend(inPlace(valid()))
	require.Empty(t, r.refused)
	require.Len(t, r.samples, 1)
	require.Equal(t, "shop", r.samples[0].service)
	require.Equal(t, map[string]string{"tenant": "acme"}, r.samples[0].labels)
	require.Equal(t, []string{"main"}, r.samples[0].functions)
	require.Equal(t, 2, r.samples[0].count)
	require.Len(t, r.profiles, 1)
	require.EqualValues(t, 77, r.profiles[0].start)
	var twice backendTotals
	twice.add(r)
	require.Empty(t, twice.refused)
	twice.add(r)
	require.Equal(t, []string{"two profiles of shop begin at 77"}, twice.refused)

	today, err := pprofileotlp.NewExportRequestFromProfiles(valid()).MarshalProto()
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(readAsBackend(today).refused), "an attribute with an empty key")

	for want, change := range map[string]func(pprofile.Profiles){
		"no service.name":              func(p pprofile.Profiles) { p.ResourceProfiles().At(0).Resource().Attributes().Remove("service.name") },
		"no CPU profile":               func(p pprofile.Profiles) { profileOf(p).SetPeriod(0) },
		"with 2 values":                func(p pprofile.Profiles) { profileOf(p).Samples().At(0).Values().Append(1, 1) },
		"without a stack":              func(p pprofile.Profiles) { profileOf(p).Samples().At(0).SetStackIndex(0) },
		"with function 0":              func(p pprofile.Profiles) { p.Dictionary().LocationTable().At(1).Lines().At(0).SetFunctionIndex(0) },
		"function: 9 of 2":             func(p pprofile.Profiles) { p.Dictionary().LocationTable().At(1).Lines().At(0).SetFunctionIndex(9) },
		"of a sample has an empty key": func(p pprofile.Profiles) { p.Dictionary().AttributeTable().At(1).SetKeyStrindex(0) },
		"string 99 of":                 func(p pprofile.Profiles) { p.Dictionary().FunctionTable().At(1).SetNameStrindex(99) },
		`invalid label name "span id"`: func(p pprofile.Profiles) { p.Dictionary().StringTable().SetAt(5, "span id") },
		`invalid label name "a-b"`:     func(p pprofile.Profiles) { p.ResourceProfiles().At(0).Resource().Attributes().PutStr("a-b", "c") },
		`duplicate label name "process_pid": "7" and "acme"`: func(p pprofile.Profiles) { p.Dictionary().StringTable().SetAt(5, "process_pid") },
	} {
		p := valid()
		change(p)
		require.Contains(t, fmt.Sprint(readAsBackend(inPlace(p)).refused), want)
	}
	require.NotEmpty(t, readAsBackend(today[:len(today)-1]).refused)
}

func profileOf(p pprofile.Profiles) pprofile.Profile {
	return p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
}
