//go:build linux

package e2e

import "testing"

// start32: many aarch64 machines cannot run 32-bit code at all. 0: none.
func start32(*testing.T) int { return 0 }
