// Package realwriters runs programs with the libraries that publish labels in
// production, from the package registries, under the receiver: each sample has the
// ids that the program itself logged for that instant.
//
// `make e2e-real-writers` installs the libraries and runs the tests, as root.
package realwriters
