// Package conformance checks that pprofile.Profiles are valid data: what the
// protocol demands, what its comments recommend, and what consumers are known
// to insist on. Tests put everything that the receiver emits through it.
//
// It is written independently of the code that builds profiles and shares
// nothing with it. Data that was marshalled and unmarshalled again is checked
// as well as data that was not: strings that marshalling adds to the string
// table on behalf of resource and scope attributes are no orphans.
package conformance
