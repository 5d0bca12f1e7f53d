// Package tlsmatrix runs every cell of the TLS matrix (package cell) and
// compares what our readers find with what the program says of itself: the
// location of the variable of each label source on each thread, the labels
// there as read from user space, and the labels of every sample taken while
// the threads burn CPU time. `make tls-matrix` runs it on this machine and, for
// the other architecture, in a virtual machine.
package tlsmatrix
