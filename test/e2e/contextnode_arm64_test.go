//go:build linux

package e2e

import (
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// nodeContextRows: scripts/node-writers.sh installs Node.js for x86-64 only.
func nodeContextRows(*testing.T, *testutil.Bounds) []*contextRow { return nil }
