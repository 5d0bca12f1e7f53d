//go:build linux

package process

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// A process may have a map of Node.js and a thread context of another library: its
// process context says which of them is meant.
func TestSchemaDecides(t *testing.T) {
	native, node := &plan{abi: record.ABIThreadContext}, &plan{abi: record.ABIThreadContextNodeJS}
	for schema, want := range map[processctx.Schema][2]bool{
		"tls_v1":         {true, false},
		"tlsdesc_v1_dev": {true, false},
		"tls_v1_dev":     {true, false},
		"tlsdesc_v1":     {true, false},
		"nodejs_v1":      {false, true},
		"nodejs_v1_dev":  {false, true},
		"nodejs_v2":      {false, false},
		"":               {false, false},
	} {
		for i, p := range []*plan{native, node} {
			err := checkSchema(p, &processctx.Context{Schema: schema})
			if want[i] {
				require.NoError(t, err, "%q", schema)
			} else {
				require.Equal(t, SourceUnsupportedSchema, stateOf(err), "%q", schema)
			}
		}
	}
	require.NoError(t, checkSchema(native, nil))
	require.Equal(t, SourceUnsupportedSchema, stateOf(checkSchema(node, nil)))
}

func TestV8Of(t *testing.T) {
	known, other := v8heap.Layout{Field: 0x20, MapType: 1}, v8heap.Layout{Field: 0x18, MapType: 2}
	program := procfs.FileID{Inode: 1}
	file := func(inode uint64, executable bool, layout v8heap.Layout, err error) ExecMapping {
		return ExecMapping{File: &File{key: procfs.FileID{Inode: inode}, facts: facts{executable: executable, v8: layout, v8Err: err}}}
	}
	unreadable := errors.New("unreadable")
	none := file(3, false, v8heap.Layout{}, v8heap.ErrNoV8)
	for name, tc := range map[string]struct {
		mappings []ExecMapping
		want     v8heap.Layout
		state    SourceState
	}{
		"program":                {[]ExecMapping{{}, none, file(1, true, known, nil)}, known, SourceActive},
		"mapped twice":           {[]ExecMapping{file(1, true, known, nil), file(1, true, known, nil), none}, known, SourceActive},
		"library":                {[]ExecMapping{file(1, true, v8heap.Layout{}, v8heap.ErrNoV8), file(2, false, known, nil)}, known, SourceActive},
		"another program's":      {[]ExecMapping{file(2, true, known, nil)}, v8heap.Layout{}, SourceUnsupportedVersion},
		"none":                   {[]ExecMapping{none}, v8heap.Layout{}, SourceUnsupportedVersion},
		"two":                    {[]ExecMapping{file(1, true, known, nil), file(2, false, other, nil)}, v8heap.Layout{}, SourceUnsupportedVersion},
		"known and not known":    {[]ExecMapping{file(1, true, known, nil), file(2, false, v8heap.Layout{}, v8heap.ErrUnknown)}, v8heap.Layout{}, SourceUnsupportedVersion},
		"that cannot be read":    {[]ExecMapping{file(1, true, v8heap.Layout{}, unreadable)}, v8heap.Layout{}, SourceUnreadable},
		"nothing but the kernel": {nil, v8heap.Layout{}, SourceUnsupportedVersion},
	} {
		t.Run(name, func(t *testing.T) {
			layout, err := v8Of(tc.mappings, &sourceContext{program: program})
			require.Equal(t, tc.state, stateOf(err), "%v", err)
			require.Equal(t, tc.want, layout)
		})
	}
}
