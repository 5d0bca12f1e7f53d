package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `
type: some
config:
  properties:
    rate:
      description: "Samples, see max_bytes. Operator: more for more."
      type: int
      default: 19
      minimum: 0.5
      maximum: 10000
    interval:
      description: "How often. Backend, privacy: as rate."
      type: duration
      default: 5s
      go_struct: { minimum: 0s, maximum: 5m }
    block:
      description: Holds others.
      properties:
        list: { description: "Some. Programs: now.", type: slice, maxItems: 3, values: { $ref: label_rule } }
        names: { description: "Some. Programs: now.", type: slice, maxItems: 4, values: { type: string } }
        text: { description: "Some. Programs: now.", type: string, maxLength: 9 }
        one: { description: "Some. Programs: now.", type: string, default: a, enum: [a, b] }
        thread.id: { description: "The thread. Privacy: off.", $ref: attribute }
exported_configs:
  attribute:
    properties:
      enabled: { description: Emit it., type: bool, default: true }
`

const rows = "| key | default | bounds | what it is | set by whom, when |\n|---|---|---|---|---|\n" +
	"| `rate` | `19` | 0.5 to 10000 | Samples, see `max_bytes` | Operator: more for more |\n" +
	"| `interval` | `5s` | 0s to 5m | How often | Backend, privacy: as rate |\n" +
	"| `block::list` | none | up to 3 rules | Some | Programs: now |\n" +
	"| `block::names` | none | up to 4 keys | Some | Programs: now |\n" +
	"| `block::text` | none | up to 9 bytes | Some | Programs: now |\n" +
	"| `block::one` | `a` | `a`, `b` | Some | Programs: now |\n" +
	"| `block::thread.id::enabled` | `true` |  | The thread | Privacy: off |\n"

func TestTable(t *testing.T) {
	got, err := table([]byte(source))
	require.NoError(t, err)
	require.Equal(t, rows, got)
	_, err = table([]byte("config: {properties: {a: {description: Something., type: bool}}}"))
	require.ErrorContains(t, err, "a: its description does not say who sets it, and when")
	_, err = table([]byte("config: 1"))
	require.Error(t, err)
}

func TestRun(t *testing.T) {
	metadata, page := filepath.Join(t.TempDir(), "metadata.yaml"), filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(metadata, []byte(source), 0o600))
	require.Error(t, run([]string{metadata, page}))
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"), 0o600))
	require.ErrorContains(t, run([]string{metadata, page}), "has no place for the table")
	require.NoError(t, os.WriteFile(page, []byte("# Page\n"+begin+"old\n"+end+"More.\n"), 0o600))
	for range 2 {
		require.NoError(t, run([]string{metadata, page}))
		got, err := os.ReadFile(page)
		require.NoError(t, err)
		require.Equal(t, "# Page\n"+begin+rows+end+"More.\n", string(got))
	}
	require.Error(t, run(nil))
}
