package samplestore

import "slices"

// largest moves the n first entries of an order to the front, in that order, and returns them.
// Of many entries it sorts few: most are looked at once.
func largest[T any](all []T, n int, order func(a, b T) int) []T {
	if len(all) <= n {
		slices.SortFunc(all, order)
		return all
	}
	// The first n entries are the best so far; what is better than the last of them waits behind
	// them until there are n of it.
	slices.SortFunc(all[:n], order)
	waiting := n
	for i := n; i < len(all); i++ {
		if order(all[i], all[n-1]) < 0 {
			all[waiting], all[i] = all[i], all[waiting]
			if waiting++; waiting == min(2*n, len(all)) {
				slices.SortFunc(all[:waiting], order)
				waiting = n
			}
		}
	}
	slices.SortFunc(all[:waiting], order)
	return all[:n]
}
