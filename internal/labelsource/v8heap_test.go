//go:build linux

package labelsource

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// A process may have a map of Node.js and a thread context of another library: its
// process context says which of them is meant.
func TestSchemaDecides(t *testing.T) {
	native, node := &executable.Plan{ABI: record.ABIThreadContext}, &executable.Plan{ABI: record.ABIThreadContextNodeJS}
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
		for i, p := range []*executable.Plan{native, node} {
			err := checkSchema(p, &processctx.Context{Schema: schema})
			if want[i] {
				require.NoError(t, err, "%q", schema)
			} else {
				require.Equal(t, UnsupportedSchema, stateOf(err), "%q", schema)
			}
		}
	}
	require.NoError(t, checkSchema(native, nil))
	require.Equal(t, UnsupportedSchema, stateOf(checkSchema(node, nil)))
}

// Thread contexts are read when their process says that they are of a form that is known.
func TestSchemaGate(t *testing.T) {
	context := &executable.Plan{ABI: record.ABIThreadContext}
	require.NoError(t, checkSchema(context, nil), "a forked child has records and no context")
	require.NoError(t, checkSchema(context, &processctx.Context{Schema: "tls_v1"}))
	require.NoError(t, checkSchema(context, &processctx.Context{Schema: "tlsdesc_v1_dev"}))
	for _, schema := range []processctx.Schema{"", "nodejs_v1_dev", "go_pprof_labels_v1", "tls_v2"} {
		require.ErrorIs(t, checkSchema(context, &processctx.Context{Schema: schema}), errSchema)
		require.NoError(t, checkSchema(&executable.Plan{ABI: record.ABIV1}, &processctx.Context{Schema: schema}), "custom labels need none")
	}
	require.Equal(t, "unsupported_schema", stateOf(errSchema).String())
}

func TestV8Of(t *testing.T) {
	known, other := v8heap.Layout{Field: 0x20, MapType: 1}, v8heap.Layout{Field: 0x18, MapType: 2}
	program := procfs.FileID{Inode: 1}
	file := func(inode uint64, program bool, layout v8heap.Layout, err error) executable.Mapping {
		return executable.Mapping{File: executable.NewFile(procfs.FileID{Inode: inode}, "", executable.Facts{Program: program, V8: layout, V8Err: err}, nil)}
	}
	unreadable := errors.New("unreadable")
	none := file(3, false, v8heap.Layout{}, v8heap.ErrNoV8)
	for name, tc := range map[string]struct {
		mappings []executable.Mapping
		want     v8heap.Layout
		state    State
	}{
		"program":                {[]executable.Mapping{{}, none, file(1, true, known, nil)}, known, Active},
		"mapped twice":           {[]executable.Mapping{file(1, true, known, nil), file(1, true, known, nil), none}, known, Active},
		"library":                {[]executable.Mapping{file(1, true, v8heap.Layout{}, v8heap.ErrNoV8), file(2, false, known, nil)}, known, Active},
		"another program's":      {[]executable.Mapping{file(2, true, known, nil)}, v8heap.Layout{}, UnsupportedVersion},
		"none":                   {[]executable.Mapping{none}, v8heap.Layout{}, UnsupportedVersion},
		"two":                    {[]executable.Mapping{file(1, true, known, nil), file(2, false, other, nil)}, v8heap.Layout{}, UnsupportedVersion},
		"known and not known":    {[]executable.Mapping{file(1, true, known, nil), file(2, false, v8heap.Layout{}, v8heap.ErrUnknown)}, v8heap.Layout{}, UnsupportedVersion},
		"that cannot be read":    {[]executable.Mapping{file(1, true, v8heap.Layout{}, unreadable)}, v8heap.Layout{}, Unreadable},
		"nothing but the kernel": {nil, v8heap.Layout{}, UnsupportedVersion},
	} {
		t.Run(name, func(t *testing.T) {
			layout, err := v8Of(&environment{Process: &Process{Mappings: tc.mappings, Program: program}})
			require.Equal(t, tc.state, stateOf(err), "%v", err)
			require.Equal(t, tc.want, layout)
		})
	}
}
