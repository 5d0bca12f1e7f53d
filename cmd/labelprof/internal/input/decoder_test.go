// SPDX-License-Identifier: Apache-2.0

package input

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// TestTooLarge: what would take more is refused in each form, what takes less is not.
func TestTooLarge(t *testing.T) {
	took := 0
	d := NewDecoder(1 << 20)
	samples := func(n int) []byte { return append(profiletest.Empty(n, 2), profiletest.Empty(3, 6)...) }
	for name, decode := range map[string]func(n int) error{
		"request": func(n int) error { return d.Request(profiletest.Empty(n, 1), func(pprofile.Profiles) { took++ }) },
		"line": func(n int) error {
			return d.line([]byte(`{"resourceProfiles":[{}`+strings.Repeat(",{}", n)+`]}`), func(pprofile.Profiles) { took++ })
		},
		"pprof": func(n int) error {
			if err := d.profile(samples(n), func(*profile.Profile) {}); !errors.Is(err, pprof.ErrFormat) {
				return err
			}
			took++ // it was decoded, and has no values
			return nil
		},
	} {
		took = 0
		require.NoError(t, decode(100), name)
		require.Equal(t, 1, took, name)
		var tooLarge *weight.TooLargeError
		require.ErrorAs(t, decode(50_000), &tooLarge, name)
		require.Equal(t, 1, took, name)
	}
}
