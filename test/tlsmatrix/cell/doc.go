// Package cell lists the cells of the TLS matrix: every way in which a program
// can be built and loaded that changes where its thread-local label variable
// is, or how that is found. A cell says how its files are built
// ([Cell.Files]), how it is started ([Cell.Args], [Cell.Env]) and what a reader
// has to find ([Cell.Sources]).
//
// The list is code, and not a directory of files, so that what is built, what
// is run and what is expected cannot come apart. testdata/tls/README.md says
// which combinations there are, which are left out, and why.
package cell
