//go:build linux

package pipeline

import (
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }
