// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package terminal

import "os"

// Elsewhere the tables follow each other.
func rowsOf(*os.File) int { return 0 }
