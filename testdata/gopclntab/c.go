// SPDX-License-Identifier: Apache-2.0

//go:build c

package main

// static int twice(int x) { return 2 * x; }
import "C"

func init() { _ = C.twice(1) }
