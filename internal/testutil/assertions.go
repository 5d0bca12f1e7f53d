// SPDX-License-Identifier: Apache-2.0

package testutil

import "fmt"

// ReportLabelAssertions prints how many samples' labels a test has compared with what
// was published. Test beds sum up these lines.
func ReportLabelAssertions(test string, n int) {
	fmt.Printf("label assertions: %d in %s\n", n, test)
}
