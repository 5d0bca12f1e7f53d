// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Program is labelprof, built, to which the kernel gives no more private memory than so much.
func Program(t testing.TB, dataKiB int, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "labelprof")
	out, err := exec.Command("go", "build", "-o", path, "github.com/customlabels/otelcol-customlabels/cmd/labelprof").CombinedOutput()
	if err != nil {
		t.Fatalf("build labelprof: %v\n%s", err, out)
	}
	script := fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, dataKiB)
	return exec.Command("sh", append([]string{"-c", script, path}, args...)...)
}
