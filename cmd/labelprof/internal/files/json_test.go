// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// TestTopJSON: the document has the numbers of the table, under the names that are promised.
func TestTopJSON(t *testing.T) {
	truth := writeTemp(t, []byte(`{"pid": 7, "sets": [{"labels": {"tenant": "acme"}, "cpu_ns": 300}, {"labels": {"tenant": "late"}, "cpu_ns": 100}]}`))
	file := writeTemp(t, formats(t)["single"])
	code, stdout, stderr := run("top", "--json", "--functions", "1", "--truth", truth, "--truth", filepath.Join(t.TempDir(), "none"), file)
	require.Zero(t, code, stderr)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	want, err := os.ReadFile("testdata/top.json")
	require.NoError(t, err)
	require.JSONEq(t, string(want), stdout)

	_, text, _ := run("top", "--functions", "1", "--truth", truth, file)
	for _, r := range got["rows"].([]any) {
		row := r.(map[string]any)
		tenant, ok := row["labels"].(map[string]any)["tenant"]
		if !ok {
			tenant = "(none)"
		}
		require.Regexp(t, fmt.Sprintf(`(?m)^  %s +%.2f s +[0-9.]+ %% +%.0f\b`, strings.NewReplacer("(", `\(`, ")", `\)`).Replace(tenant.(string)), row["cpu_ns"].(float64)/1e9, row["samples"]), text)
	}
}

// What finds no place in rows is added up, what is not printable is escaped, what is no UTF-8 is
// told apart; without samples there is a document, too.
func TestTopJSONOfAnything(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(3, []string{"f\xff"}, "tenant", "\x1b[2J\u202e")
	s := f.Sample(2, []string{"g"})
	s.AttributeIndices().Append(f.Attribute("tenant", func(v pcommon.Value) { v.SetEmptyBytes().Append(0xff, 0, 'x') }))
	f.Sample(1, []string{"g"}, "tenant", "rest")
	data, err := pprofileotlp.NewExportRequestFromProfiles(f.Profiles).MarshalProto()
	require.NoError(t, err)
	code, stdout, stderr := run("top", "--json", "--rows", "2", writeTemp(t, data))
	require.Zero(t, code, stderr)
	require.NotContains(t, stdout, "\x1b")
	require.NotContains(t, stdout, "\u202e")
	var got struct {
		Rows []struct {
			Labels       map[string]string
			LabelsBase64 map[string][]byte `json:"labels_base64"`
			Functions    []struct{ Name string }
		}
		Others struct{ Samples int64 }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.Len(t, got.Rows, 2)
	require.Equal(t, map[string]string{"tenant": "\x1b[2J\u202e"}, got.Rows[0].Labels)
	require.Empty(t, got.Rows[1].Labels)
	require.Equal(t, map[string][]byte{"tenant": {0xff, 0, 'x'}}, got.Rows[1].LabelsBase64)
	require.EqualValues(t, 1, got.Others.Samples)
	require.Equal(t, `f\xff`, got.Rows[0].Functions[0].Name)

	code, stdout, stderr = run("top", "--json", writeTemp(t, nil))
	require.Equal(t, command.ExitError, code)
	require.Contains(t, stderr, "no samples")
	require.JSONEq(t, `{"version": 1, "by": ["tenant"], "cpu_ns": 0, "samples": 0, "traced_cpu_ns": 0, "off_cpu_ns": 0, "absences": 0,
		"processes": 0, "more_processes": false, "rows": [], "others": {"cpu_ns": 0, "samples": 0, "off_cpu_ns": 0}, "notes": []}`, stdout)
}
