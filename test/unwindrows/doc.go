// Package unwindrows compares the rows of internal/unwind with what readelf
// prints of the same files: at every address at which readelf starts a row, and
// at every address at which a Table does.
//
// readelf prints "exp" for any expression and "u" both for a register that is
// undefined and for one that was not mentioned. What an expression or such a
// register is, is taken from the instructions, which readelf prints in another
// mode; rows are never taken from there.
package unwindrows
