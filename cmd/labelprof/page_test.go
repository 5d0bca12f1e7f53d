// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/goleak"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// pageURL waits for the page of a running command.
func (s *served) pageURL(t *testing.T) string {
	t.Helper()
	var url string
	require.Eventually(t, func() bool {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(s.stderr.String())
		return url != ""
	}, time.Minute, time.Millisecond)
	return url
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	return body
}

// told is a part of what the page gets.
type told struct {
	Version string
	Hits    [2]int64
	Ns      [2]int64
	Live    bool
}

func pageView(t *testing.T, url, query string) told {
	t.Helper()
	var v told
	require.NoError(t, json.Unmarshal(fetch(t, url+"api/view?"+query), &v))
	return v
}

func TestServePage(t *testing.T) {
	defer goleak.VerifyNone(t)
	s, address := startServe(t)
	url := s.pageURL(t)
	require.Contains(t, string(fetch(t, url)), "page.js")
	require.Zero(t, pageView(t, url, "").Hits[0])
	export(t, address)
	v := pageView(t, url, "")
	require.True(t, v.Live)
	require.EqualValues(t, 100, v.Hits[0])
	require.EqualValues(t, 60, pageView(t, url, "l.tenant=acme").Hits[0], "with and without the prefix")
	require.Equal(t, [2]int64{60, 30}, pageView(t, url, "cmp=tenant&a=acme&b=globex").Hits)
	require.EqualValues(t, 10, pageView(t, url, "n.tenant").Hits[0])
	require.EqualValues(t, 10, pageView(t, url, "l.process.pid=8").Hits[0])
	require.EqualValues(t, 40, pageView(t, url, "l.trace_id=0a0b0c0000000000000000000000000d").Hits[0])
	require.EqualValues(t, 30, pageView(t, url, "fn=compress").Hits[0])

	p, err := profile.ParseData(fetch(t, url+"api/profile?l.tenant=acme"))
	require.NoError(t, err)
	require.Len(t, p.Sample, 2)
	require.Equal(t, []int64{40, 40 * periodNs}, p.Sample[0].Value)
	require.Equal(t, []string{"/a"}, p.Sample[0].Label["route"])
	require.Equal(t, []int64{7}, p.Sample[0].NumLabel[keyPID])
	require.Equal(t, "abcd", p.Sample[0].Location[0].Mapping.BuildID)
	s.cancel()
	require.Zero(t, s.wait(t))
}

// TestServeFiles: a pprof file of ours shows the same as the profiles that it is from.
func TestServeFiles(t *testing.T) {
	f := formats(t)
	pprofFile := filepath.Join(t.TempDir(), "out.pb.gz")
	otlpFile := writeTemp(t, f["single"])
	code, _, stderr := command("pprof", otlpFile, "-o", pprofFile)
	require.Zero(t, code, stderr)
	for _, file := range []string{otlpFile, pprofFile} {
		s := startFiles(t, file)
		url := s.pageURL(t)
		require.False(t, pageView(t, url, "").Live)
		require.EqualValues(t, 100, pageView(t, url, "").Hits[0])
		require.EqualValues(t, 60, pageView(t, url, "l.tenant=acme").Hits[0])
		require.EqualValues(t, 90, pageView(t, url, "l.process.pid=7").Hits[0])
		s.cancel()
		require.Zero(t, s.wait(t))
	}
	code, stdout, stderr := command("top", pprofFile)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "acme    3.00 s  60.0 %       60\n")
}

func startFiles(t *testing.T, files ...string) *served {
	t.Helper()
	s := newServed()
	s.start(append([]string{"serve", "--web", "127.0.0.1:0"}, files...))
	t.Cleanup(s.cancel)
	return s
}

func TestBadPprofFiles(t *testing.T) {
	heap := &profile.Profile{SampleType: []*profile.ValueType{{Type: "space", Unit: "bytes"}}}
	name := filepath.Join(t.TempDir(), "heap.pb.gz")
	require.NoError(t, replaceFile(name, heap.Write))
	code, _, stderr := command("top", name)
	require.Equal(t, exitError, code)
	require.Contains(t, stderr, "neither CPU time nor off-CPU time")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, bad := range [][]byte{data[:len(data)-9], {0x1f, 0x8b, 1, 2, 3}} {
		code, _, stderr = command("top", writeTemp(t, bad))
		require.Equal(t, exitError, code)
		require.Contains(t, stderr, "labelprof top: read ")
	}
}

// TestLabelsCannotPass: what the kernel says of a process stays, whatever a program publishes.
func TestLabelsCannotPass(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{"f"}, labelPrefix+keyPID, "1", labelPrefix+keyProcessName, "init", labelPrefix+"bad\xff", "\xfe", labelPrefix+"service.name", "mine")
	s := &sink{store: samplestore.New(1 << 20)}
	s.consume(f.profiles)
	labels := map[string]string{}
	s.store.Export(&samplestore.Query{}, func(e *samplestore.Entry) {
		for _, l := range e.Labels {
			labels[l.Key] = l.Value
		}
	})
	require.Equal(t, map[string]string{
		keyPID: "7", keyProcessName: "writer", labelPrefix + keyPID: "1", labelPrefix + keyProcessName: "init",
		`bad\xff`: `\xfe`, "service.name": "mine",
	}, labels)
}

// TestOffCPU: off-CPU time is on the page, and apart from CPU time in the tables.
func TestOffCPU(t *testing.T) {
	f := tenants(t)
	f.process(9, "sleeper")
	f.profile.SampleType().SetTypeStrindex(f.text("off_cpu"))
	f.profile.SampleType().SetUnitStrindex(f.text("nanoseconds"))
	f.profile.SetPeriod(0)
	f.sample(2, []string{"sleep"}).Values().Append(5e6, 7e6)
	last := f.dict.LocationTable().At(f.dict.LocationTable().Len() - 1)
	last.AttributeIndices().Append(f.attribute(keyFrameType, func(v pcommon.Value) { v.SetStr("native") }))
	s := &sink{store: samplestore.New(1 << 20), table: newTable([]string{"tenant"})}
	s.consume(f.profiles)
	require.EqualValues(t, 100, s.table.hits)
	require.EqualValues(t, 2, s.table.absences)
	v := s.store.Query(&samplestore.Query{Kind: samplestore.OffCPU})
	require.EqualValues(t, 12e6, v.Ns[0])
	require.EqualValues(t, 2, v.Hits[0])
	require.Equal(t, samplestore.Frame{Name: "sleep", Module: "/usr/bin/program", Type: "native"}, v.Functions[0].Frame)
	require.EqualValues(t, 100, s.store.Query(&samplestore.Query{}).Hits[0])
	require.NotContains(t, s.notes(), "off-CPU")
}

// TestPprofOfBoth: a pprof file of ours keeps both kinds of time.
func TestPprofOfBoth(t *testing.T) {
	from := &sink{pprof: newPprofProfile(maxPprofBytes)}
	from.consume(tenants(t).profiles)
	from.consume(absences().profiles)
	file := filepath.Join(t.TempDir(), "both.pb.gz")
	require.NoError(t, from.pprof.writeFile(file))
	s := &sink{store: samplestore.New(1 << 20), table: newTable([]string{"tenant"})}
	require.NoError(t, readInto(t.Context(), file, newDecoder(64<<20), s))
	on, off := s.store.Query(&samplestore.Query{}), s.store.Query(&samplestore.Query{Kind: samplestore.OffCPU})
	require.Equal(t, []int64{100, 100 * periodNs}, []int64{on.Hits[0], on.Ns[0]})
	require.Equal(t, []int64{3, 4e9}, []int64{off.Hits[0], off.Ns[0]})
	require.EqualValues(t, 3, s.table.absences)
	require.Zero(t, s.malformed)

	// What the page gives of one kind, it reads again.
	var b bytes.Buffer
	require.NoError(t, writeSelection(&b, s.store, &samplestore.Query{Kind: samplestore.OffCPU}))
	again := &sink{store: samplestore.New(1 << 20)}
	require.NoError(t, readInto(t.Context(), writeTemp(t, b.Bytes()), newDecoder(64<<20), again))
	off = again.store.Query(&samplestore.Query{Kind: samplestore.OffCPU})
	require.Equal(t, []int64{3, 4e9}, []int64{off.Hits[0], off.Ns[0]})
	require.Zero(t, again.store.Query(&samplestore.Query{}).Hits[0])
}

func FuzzReadPprof(f *testing.F) {
	p := newPprofProfile(maxPprofBytes)
	walk(tenants(f).profiles, p.add)
	walk(absences().profiles, p.add)
	var b bytes.Buffer
	require.NoError(f, p.profile.WriteUncompressed(&b))
	f.Add(b.Bytes())
	for _, bomb := range pprofBombs(50) {
		f.Add(bomb)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &sink{store: samplestore.New(1 << 20), table: newTable([]string{"tenant"}), pprof: newPprofProfile(maxPprofBytes)}
		if newDecoder(64<<20).profile(data, s.consumePprof) != nil {
			return
		}
		s.store.Query(&samplestore.Query{By: "tenant", Buckets: 10})
		require.NoError(t, s.pprof.profile.CheckValid())
	})
}
