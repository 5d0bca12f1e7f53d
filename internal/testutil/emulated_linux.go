// SPDX-License-Identifier: Apache-2.0

package testutil

import "os"

// EmulatedEnv set to 1 says that an emulator runs everything 5 to 20 times as slowly as
// a processor would: tests may then take smaller samples and longer deadlines.
const EmulatedEnv = "CUSTOM_LABELS_EMULATED"

// Emulated tells whether this machine is emulated. See EmulatedEnv.
func Emulated() bool { return os.Getenv(EmulatedEnv) == "1" }
