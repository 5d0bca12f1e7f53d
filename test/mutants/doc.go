// Command mutants shows that the tests notice when the product is changed.
//
// A mutation is one change that would make the product wrong: a text of one file, and
// what stands there instead. data/ has them by package (see [readMutations] for the
// form), with the tests that must notice. All mutations are compiled in at once and chosen by
// number when a program runs:
//
//   - Go files are parsed, and the old text becomes a choice between old and new: of
//     statements, of a condition, or of an expression, whatever the text is there.
//   - The BPF programs get a constant that is set when they are loaded, so that the
//     verifier removes what is not chosen.
//
// So each test program is built once. What is changed is handed to the go command as
// an overlay: the tree is never touched, and no build of the product knows of it.
//
// Then the tests run, each by itself: first without any mutation, which tells how long each
// takes and which mutations of Go code it reaches, and then, for each mutation, those that
// reach it, quick ones first, up to the first that fails. A mutation that none notices has
// survived: a test is missing, or the change does no harm. The latter is accepted with a
// reason in the data. The exit status is 1 if one survives without a reason, or is noticed
// although there is a reason.
package main
