//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// TestOldKernel: a kernel before 6.1 is refused at the start, in one sentence that
// names what is needed. On others the receiver starts.
func TestOldKernel(t *testing.T) {
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	release := unix.ByteSliceToString(uts.Release[:])
	var major, minor int
	_, err := fmt.Sscanf(release, "%d.%d", &major, &minor)
	require.NoError(t, err)

	r := newReceiver(t, &sink{t: t}, nil, func(*customlabelsreceiver.Config) {})
	err = r.Start(t.Context(), componenttest.NewNopHost())
	if major > 6 || major == 6 && minor >= 1 {
		require.NoError(t, err)
		require.NoError(t, r.Shutdown(t.Context()))
		return
	}
	require.Error(t, err)
	require.Contains(t, err.Error(), release)
	require.Contains(t, err.Error(), "Linux 6.1 or newer is needed")
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, r.Shutdown(t.Context()))
	fmt.Printf("refused: %v\n", err)
}
