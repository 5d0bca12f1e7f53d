// Package budget bounds what the receiver takes from its host beside the samples
// themselves: CPU time a second for work in the background ([CPU]), and memory
// ([Memory]).
//
// Neither counts anything by itself: whoever does work or holds memory says how much,
// and asks before it does more. Both are shared by all parts of one receiver, so that
// what one part leaves another one may take. Their methods may be called from
// everywhere, and a nil budget has no limit.
package budget
