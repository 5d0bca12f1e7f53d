//go:build !linux

package procfs

import "os"

// query is for Linux.
func (*MappingReader) query(*os.File, func(Mapping, error) bool) (known bool) { return false }
