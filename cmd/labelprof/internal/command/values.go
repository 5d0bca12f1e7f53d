// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strconv"
	"strings"
)

// List is a flag of values separated by commas, with or without space around them.
type List []string

// String implements flag.Value.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *List) Set(s string) error {
	*l = nil
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
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

// Count is a flag of a number that is not below 0.
type Count int

// String implements flag.Value.
func (c *Count) String() string { return strconv.Itoa(int(*c)) }

// Set implements flag.Value.
func (c *Count) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return errors.New("not a number from 0 on")
	}
	*c = Count(n)
	return nil
}
