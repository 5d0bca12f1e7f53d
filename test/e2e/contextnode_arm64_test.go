//go:build linux

package e2e

import "testing"

// nodeContextRows: scripts/node-writers.sh installs Node.js for x86-64 only.
func nodeContextRows(*testing.T) []*contextRow { return nil }
