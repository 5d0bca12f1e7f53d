package writercheck

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/processctx"
)

// The header of a process context (OTEP 4719, "Header Structure").
const (
	headerBytes     = 32
	headerVersion   = 8
	headerSize      = 12
	headerPublished = 16
	headerPayload   = 24

	contextSignature = "OTEL_CTX"
	contextVersion   = 2
)

// publication is one reading of a process context.
type publication struct {
	header     [headerBytes]byte
	headerErr  error
	payload    []byte
	payloadErr error
	// after is the header when the payload had been read.
	after [headerBytes]byte
}

// readPublication reads the context whose mapping starts at an address, beside the threads that
// may be writing it.
func readPublication(mem Memory, addr uint64) *publication {
	p := &publication{}
	if p.headerErr = mem.ReadAt(p.header[:], addr); p.headerErr != nil {
		return p
	}
	if n := p.size(); n > 0 && n <= processctx.MaxPayloadBytes && p.published() != 0 {
		payload := make([]byte, n)
		if p.payloadErr = mem.ReadAt(payload, p.address()); p.payloadErr == nil {
			p.payload = payload
		}
	}
	p.headerErr = mem.ReadAt(p.after[:], addr)
	return p
}

func (p *publication) version() uint32 { return binary.LittleEndian.Uint32(p.header[headerVersion:]) }
func (p *publication) size() uint32    { return binary.LittleEndian.Uint32(p.header[headerSize:]) }
func (p *publication) published() uint64 {
	return binary.LittleEndian.Uint64(p.header[headerPublished:])
}
func (p *publication) address() uint64 { return binary.LittleEndian.Uint64(p.header[headerPayload:]) }

// contextJudge judges what a process says of itself, reading after reading.
type contextJudge struct {
	t *tally
	// Of the last publication that was read in whole.
	last  *publication
	known content
	// decoded tells that known is what a payload said.
	decoded bool

	readings, written uint64 // and of these, while it was being written
}

// judge takes one reading. bootNs is CLOCK_BOOTTIME now, startNs when the process began, both by its own clock.
func (j *contextJudge) judge(p *publication, bootNs, startNs uint64) {
	const f = ProcessContext
	if p.headerErr != nil {
		return // the mapping has gone
	}
	j.readings++
	t := j.t
	if p.published() == 0 && j.last == nil {
		j.written++
		return // it has the name of one, and is not written yet
	}
	signed := t.check(f.rule("signature"), string(p.header[:headerVersion]) == contextSignature, "signature %q", p.header[:headerVersion])
	current := t.check(f.rule("version"), p.version() == contextVersion, "version %d", p.version())
	if p.published() == 0 || p.after != p.header {
		j.written++
		return // being written, as it says
	}
	t.check(f.rule("timestamp"), true, "")
	if j.last != nil && j.last.published() == p.published() {
		same := j.last.header == p.header && (p.payload == nil || bytes.Equal(j.last.payload, p.payload))
		t.check(f.rule("update"), same, "another header or payload at the time %d", p.published())
		if same {
			return
		}
	} else if j.last != nil {
		t.check(f.rule("update"), true, "from time %d to %d", j.last.published(), p.published())
	}
	t.check(f.rule("clock"), p.published() >= startNs && p.published() <= bootNs, "published at %d, the process began at %d, now it is %d", p.published(), startNs, bootNs)
	sized := t.check(f.rule("payload-size"), p.size() > 0 && p.size() <= processctx.MaxPayloadBytes, "a payload of %d bytes", p.size())
	if !signed || !current || !sized {
		return
	}
	j.last = p
	if !t.check(f.rule("payload-readable"), p.payloadErr == nil, "%d bytes at %#x: %v", p.size(), p.address(), said(p.payloadErr)) {
		return
	}
	c, err := decode(p.payload)
	if !t.check(f.rule("payload-decodes"), err == nil, "%d bytes: %v", p.size(), said(err)) {
		return
	}
	j.content(&c)
}

// content judges what a payload says.
func (j *contextJudge) content(c *content) {
	const f = ProcessContext
	t := j.t
	t.check(f.rule("payload-fields"), c.unknown == 0, "%d fields with a number that is not 1 or 2, or of another type", c.unknown)
	t.check(f.rule("resource-keys"), c.empty == 0 && c.twice == "", "%d attributes, %d without key or value, key %q twice", len(c.resource), c.empty, c.twice)
	t.check(f.rule("service-name"), c.service != "", "service.name %q", c.service)
	t.check(f.rule("coordination"), c.misplaced == "", "%q in the resource", c.misplaced)
	if c.hasNames {
		j.names(c)
	}
	j.known, j.decoded = *c, true
}

// names judges a key map, and against the one before.
func (j *contextJudge) names(c *content) {
	t := j.t
	if len(c.names) > 0 || c.notText > 0 {
		twice := twiceIn(c.names)
		ok := len(c.names) <= maxNames && c.notText == 0 && twice == "" && !slices.Contains(c.names, "")
		t.check(ThreadContext.rule("key-map"), ok, "%d names: %q; %d that are no strings", len(c.names), c.names[:min(len(c.names), 8)], c.notText)
	}
	if before := j.known.names; len(before) > 0 {
		ok := len(before) <= len(c.names) && slices.Equal(before, c.names[:len(before)])
		t.check(ThreadContext.rule("key-map-append-only"), ok, "%q after %q", c.names[:min(len(c.names), 8)], before[:min(len(before), 8)])
	}
}

// end judges what only the whole time tells.
func (j *contextJudge) end() {
	if j.readings > 0 && j.readings == j.written {
		j.t.check(ProcessContext.rule("timestamp"), false, "0, or another one after each reading, in all of %d readings", j.readings)
	}
}

func twiceIn(names []string) string {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}
