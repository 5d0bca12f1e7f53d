// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

type number interface{ ~int | ~float64 }

func innermost[T number](x T) T { return x*x + 1 }

func middle[T number](x T) T { return innermost(x) + innermost(x+1) }

type shape struct{ sides int }

func (s shape) area() int { return middle(s.sides) }

//go:noinline
func outermost(n int) string {
	add := func(i int) int { return i + shape{i}.area() }
	var b strings.Builder
	for i := range n {
		b.WriteByte(byte('a' + add(i)%26 + int(middle(float64(i)))%2))
	}
	return b.String()
}
