// SPDX-License-Identifier: Apache-2.0

package testutil

// Spin32Bit: there is no such program for aarch64, of which many machines have no 32-bit
// instructions at all.
func Spin32Bit() []byte { return nil }

func exit32Bit() []byte { return nil }
