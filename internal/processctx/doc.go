// Package processctx reads the process context of another process (OTEP 4719):
// the resource that its OpenTelemetry SDK describes it by, and the attributes
// that say how to read its thread contexts.
//
// A publisher keeps a small mapping of a well-known name, which holds a header,
// which points at a payload in protobuf. It may rewrite both at any time, and a
// reader has no lock: Read trusts a payload only if the header's timestamp is the
// same before and after. All of it is hostile input: sizes, pointers and nesting
// are bounded.
//
// The package keeps nothing between calls. Which process to look at, and when
// again, is the caller's business.
package processctx
