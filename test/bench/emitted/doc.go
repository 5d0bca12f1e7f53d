// Package emitted reads what collectors have written with the exporter of
// test/bench/peer/fileexporter, so that what two receivers emit can be compared: by
// addresses in files, which both tell, and not by names, which one looks up and the other
// does not.
package emitted
