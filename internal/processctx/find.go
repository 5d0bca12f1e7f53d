package processctx

import (
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// mappingNames are what the path of the publisher's mapping starts with in
// /proc/PID/maps: a memfd, a memfd whose mapping was named too, and named
// anonymous memory (OTEP 4719, "Mapping").
var mappingNames = [...]string{"/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"}

// IsMapping reports whether a mapping may be the one of a process context, by
// its name. Executable ones are not: no publisher makes them.
func IsMapping(m *procfs.Mapping) bool {
	if m.Perms&procfs.PermRead == 0 || m.Perms&procfs.PermExec != 0 {
		return false
	}
	for _, name := range mappingNames {
		if strings.HasPrefix(m.Path, name) {
			return true
		}
	}
	return false
}
