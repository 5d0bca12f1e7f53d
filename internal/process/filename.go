//go:build linux

package process

import (
	"path"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// conforms reports whether a library has a name that the custom labels ABI
// allows for one that defines its variables. As regular expressions over the
// name without its directory:
//
//	v0  libcustomlabels.*\.so
//	v1  libcustomlabels.*\.so$|customlabels\.node$
//
// Thread contexts may be in any library (OTEP 4947).
func conforms(abi record.ABI, file string) bool {
	name := path.Base(file)
	at := strings.Index(name, "libcustomlabels")
	switch abi {
	case record.ABIV0:
		return at >= 0 && strings.Contains(name[at+len("libcustomlabels"):], ".so")
	case record.ABIV1:
		return at >= 0 && strings.HasSuffix(name[at+len("libcustomlabels"):], ".so") ||
			strings.HasSuffix(name, "customlabels.node")
	}
	return true
}
