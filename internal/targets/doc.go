// Package targets decides which processes are wanted, by what is known of them.
//
// A Selector matches a process by one or more of its properties, all of which must
// match. A Selection wants what one of its included selectors matches, or everything
// if there are none, unless an excluded one matches it too.
//
// It knows neither the process table nor the configuration: the receiver translates.
//
// # In user space
//
// User space decides which processes are sampled, BPF looks a flag up. Globs, users and
// containers are a matter of the process table, which judges a process when it reads it and
// again at each look; the flag lies in the map that has the label sources, in place of
// which it is found before anything is read of the process. So a filtered sample costs one
// lookup, whatever the selectors are, and none where nothing is selected. A forked child
// has its parent's flag from its first instant, unless a selector is about PIDs.
package targets
