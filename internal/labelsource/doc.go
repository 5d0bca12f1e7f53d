// Package labelsource finds out where a process publishes labels: it holds what the files
// that the process maps say of themselves (executable.Plan) against the memory of the process.
//
// It only reads. What the dynamic loader knows is read anew at each look at a process, and only
// for places in the DTV and libraries without relocations. It costs a few reads of some bytes;
// kept between looks, it would be pointers into memory that the process has freed since.
//
// A place that the loader has filled in is believed when it has been seen twice.
package labelsource
