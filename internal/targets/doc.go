// Package targets decides which processes are wanted, by what is known of them.
//
// A Selector matches a process by one or more of its properties, all of which must
// match. A Selection wants what one of its included selectors matches, or everything
// if there are none, unless an excluded one matches it too.
//
// It knows neither the process table nor the configuration: the receiver translates.
package targets
