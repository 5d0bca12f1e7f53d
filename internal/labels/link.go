package labels

// Link identifies the trace and span that a thread worked for. The ids are in
// W3C byte order; the zero Link means none. A Link has both ids or neither.
type Link struct {
	TraceID [16]byte
	SpanID  [8]byte
}

// IsZero reports whether there is no link.
func (l Link) IsZero() bool { return l == Link{} }
