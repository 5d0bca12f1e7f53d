// Package corpus builds the programs and libraries of testdata/tls for tests
// with the compilers of the machine. A missing compiler fails the test: what
// the corpus covers must not shrink unnoticed.
package corpus
