//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

func TestSampled(t *testing.T) {
	for _, tc := range []struct {
		schema  processctx.Schema
		decoded labels.Decoded
		want    profile.Sampled
	}{
		{processctx.SchemaTLS, labels.Decoded{Flags: 0x03}, profile.SampledYes},
		{processctx.SchemaTLS, labels.Decoded{Flags: 0x02}, profile.SampledNo},
		{processctx.SchemaTLS, labels.Decoded{Flags: 0x01, Promoted: true}, profile.SampledUnknown},
		{processctx.SchemaNodeJS, labels.Decoded{Flags: 0x01}, profile.SampledYes},
		{processctx.SchemaNodeJS, labels.Decoded{}, profile.SampledUnknown},
		{processctx.SchemaNodeJSDev, labels.Decoded{Flags: 0x01}, profile.SampledYes},
		{processctx.SchemaTLSDev, labels.Decoded{Flags: 0x01}, profile.SampledUnknown},
		{processctx.SchemaTLSDescDev, labels.Decoded{Flags: 0x01}, profile.SampledUnknown},
		{"", labels.Decoded{Flags: 0x01}, profile.SampledUnknown},
	} {
		require.Equal(t, tc.want, sampled(&processctx.Context{Schema: tc.schema}, &tc.decoded), "%s %+v", tc.schema, tc.decoded)
	}
	require.Equal(t, profile.SampledUnknown, sampled(nil, &labels.Decoded{Flags: 1}))
}
