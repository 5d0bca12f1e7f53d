// SPDX-License-Identifier: Apache-2.0

package serve

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
	"go.uber.org/goleak"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
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
	Notes   []string
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
	require.Equal(t, []int64{40, 40 * profiletest.PeriodNs}, p.Sample[0].Value)
	require.Equal(t, []string{"/a"}, p.Sample[0].Label["route"])
	require.Equal(t, []int64{7}, p.Sample[0].NumLabel[sample.KeyPID])
	require.Equal(t, "abcd", p.Sample[0].Location[0].Mapping.BuildID)
	s.cancel()
	require.Zero(t, s.wait(t))
}

// TestServeFiles: a pprof file of ours shows the same as the profiles that it is from.
func TestServeFiles(t *testing.T) {
	pprofFile := filepath.Join(t.TempDir(), "out.pb.gz")
	otlpFile := single(t)
	code, _, stderr := run("pprof", otlpFile, "-o", pprofFile)
	require.Zero(t, code, stderr)
	for _, file := range []string{otlpFile, pprofFile} {
		s := startFiles(t, file)
		url := s.pageURL(t)
		// The page is there before the files are read.
		require.Eventually(t, func() bool { return !pageView(t, url, "").Live }, time.Minute, 10*time.Millisecond)
		require.EqualValues(t, 100, pageView(t, url, "").Hits[0])
		require.EqualValues(t, 60, pageView(t, url, "l.tenant=acme").Hits[0])
		require.EqualValues(t, 90, pageView(t, url, "l.process.pid=7").Hits[0])
		s.cancel()
		require.Zero(t, s.wait(t))
	}
	code, stdout, stderr := run("top", pprofFile)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "acme    3.00 s  60.0 %       60\n")
}

// TestServeCutFile: what is before a cut is shown; that there is one is said at once, on the page,
// and at the end, which is no success.
func TestServeCutFile(t *testing.T) {
	var frames bytes.Buffer
	for range 2 {
		_, err := otlp.AppendFrame(&frames, profiletest.Tenants().Profiles)
		require.NoError(t, err)
	}
	file := filepath.Join(t.TempDir(), "rec.otlp")
	require.NoError(t, os.WriteFile(file, frames.Bytes()[:frames.Len()-3], 0o600))
	s := startFiles(t, file)
	url := s.pageURL(t)
	s.said(t, `(?m)^(read .*rec\.otlp: the file ends within request 2, .*)$`)
	require.Eventually(t, func() bool { return !pageView(t, url, "").Live }, time.Minute, 10*time.Millisecond)
	v := pageView(t, url, "")
	require.EqualValues(t, 100, v.Hits[0])
	require.Len(t, v.Notes, 1)
	require.Contains(t, v.Notes[0], "the file ends within request 2")
	s.cancel()
	require.Equal(t, command.ExitError, s.wait(t))
	require.Contains(t, s.stdout.String(), "in 100 samples")
	require.Contains(t, s.stderr.String(), "labelprof serve: read "+file+": the file ends within request 2")
}

func startFiles(t *testing.T, files ...string) *served {
	t.Helper()
	s := newServed()
	s.start(append([]string{"--web", "127.0.0.1:0"}, files...))
	t.Cleanup(s.cancel)
	return s
}

// TestOwnersOnly: what is written is for nobody else, also where a file was there before.
func TestOwnersOnly(t *testing.T) {
	for _, before := range []bool{false, true} {
		dir := t.TempDir()
		pprof, otlp := filepath.Join(dir, "pprof"), filepath.Join(dir, "otlp")
		if before {
			for _, name := range []string{pprof, otlp} {
				require.NoError(t, os.WriteFile(name, nil, 0o644))
				require.NoError(t, os.Chmod(name, 0o644))
			}
		}
		code, _, stderr := run("pprof", "-o", pprof, single(t))
		require.Zero(t, code, stderr)
		s, address := startServe(t, "--out-otlp", otlp)
		export(t, address)
		s.cancel()
		require.Zero(t, s.wait(t))
		for _, name := range []string{pprof, otlp} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode(), "%s, there before: %v", name, before)
		}
	}
}
