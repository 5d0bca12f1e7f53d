//go:build amd64 || arm64

package customlabelsreceiver

import (
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

type symbolizer struct{}

func (s *symbolizer) kernelFunction(uint64) string                 { return "" }
func (s *symbolizer) function(*process.ExecMapping, uint64) string { return "" }
func (r *resolver) close()                                         {}

func newResolver(cfg *Config, log *zap.Logger) *resolver {
	return &resolver{mappings: map[mappingKey]*profile.Mapping{}}
}
