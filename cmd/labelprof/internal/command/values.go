// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strings"
)

// List is a flag of values separated by commas.
type List []string

// String implements flag.Value.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *List) Set(s string) error {
	*l = nil
	for item := range strings.SplitSeq(s, ",") {
		if item == "" {
			return errors.New("an empty name")
		}
		*l = append(*l, item)
	}
	return nil
}

// Repeated is a flag that may be given several times.
type Repeated []string

// String implements flag.Value.
func (r *Repeated) String() string { return strings.Join(*r, " ") }

// Set implements flag.Value.
func (r *Repeated) Set(s string) error {
	*r = append(*r, s)
	return nil
}
