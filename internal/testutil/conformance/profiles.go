package conformance

import (
	"encoding/hex"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Sample types about which more is agreed than the protocol demands.
const (
	onCPUType  = "samples/count"
	offCPUType = "off_cpu/nanoseconds"
)

func (c *checker) resource(where string, rp pprofile.ResourceProfiles) {
	c.inlineAttributes(where+".resource", rp.Resource().Attributes())
	c.utf8(where+".schema_url", rp.SchemaUrl())
	if rp.ScopeProfiles().Len() == 0 {
		c.errorf(where, "has no scope_profiles")
	}
	types := map[string]bool{}
	for i, sp := range rp.ScopeProfiles().All() {
		at := fmt.Sprintf("%s.scope_profiles[%d]", where, i)
		c.inlineAttributes(at+".scope", sp.Scope().Attributes())
		c.utf8(at+".scope.name", sp.Scope().Name())
		c.utf8(at+".scope.version", sp.Scope().Version())
		c.utf8(at+".schema_url", sp.SchemaUrl())
		if sp.Profiles().Len() == 0 {
			c.errorf(at, "has no profiles")
		}
		for j, p := range sp.Profiles().All() {
			at := fmt.Sprintf("%s.profiles[%d]", at, j)
			c.profile(at, p)
			kind := c.valueType(p.SampleType())
			if types[kind] {
				c.errorf(at, "another profile of this resource has the type %s, too", kind)
			}
			types[kind] = true
		}
	}
}

// inlineAttributes checks the attributes of a resource or scope. Marshalling
// moves their strings to the string table, where these refer to them.
func (c *checker) inlineAttributes(where string, m pcommon.Map) {
	c.attributeMap(where, m)
	var use func(pcommon.Value)
	useMap := func(m pcommon.Map) {
		for k, v := range m.All() {
			c.use(stringTable, c.index[k])
			use(v)
		}
	}
	use = func(v pcommon.Value) {
		switch v.Type() {
		case pcommon.ValueTypeStr:
			c.use(stringTable, c.index[v.Str()])
		case pcommon.ValueTypeMap:
			useMap(v.Map())
		case pcommon.ValueTypeSlice:
			for _, e := range v.Slice().All() {
				use(e)
			}
		}
	}
	useMap(m)
}

// valueType returns "type/unit".
func (c *checker) valueType(v pprofile.ValueType) string {
	return c.string(v.TypeStrindex()) + "/" + c.string(v.UnitStrindex())
}

func (c *checker) profile(where string, p pprofile.Profile) {
	if id := p.ProfileID(); !id.IsEmpty() {
		if c.profileIDs[id] {
			c.errorf(where, "another profile has the profile_id %x, too", id[:])
		}
		c.profileIDs[id] = true
	}
	for field, v := range map[string]pprofile.ValueType{"sample_type": p.SampleType(), "period_type": p.PeriodType()} {
		c.bound(where, field+".type_strindex", stringTable, v.TypeStrindex())
		c.bound(where, field+".unit_strindex", stringTable, v.UnitStrindex())
		c.use(stringTable, v.TypeStrindex())
		c.use(stringTable, v.UnitStrindex())
	}
	c.attributes(where, p.AttributeIndices())
	c.useAll(attributeTable, p.AttributeIndices().AsRaw())
	if p.Time() == 0 || p.DurationNano() == 0 || p.DurationNano() > math.MaxUint64-uint64(p.Time()) {
		c.errorf(where, "time %d with duration %d is no interval", p.Time(), p.DurationNano())
	}
	if p.Samples().Len() == 0 {
		c.errorf(where, "has no samples")
	}
	c.period(where, p)

	seen := map[string]int{}
	first := shape("")
	for i, s := range p.Samples().All() {
		at := fmt.Sprintf("%s.samples[%d]", where, i)
		c.sample(at, p, s)
		if is := shapeOf(s); i == 0 {
			first = is
			c.shapeFits(at, p, is)
		} else if is != first {
			c.errorf(at, "has %s, the first sample %s", is, first)
		}
		identity := fmt.Sprint(s.StackIndex(), s.LinkIndex(), setKey(s.AttributeIndices()))
		if other, ok := seen[identity]; ok {
			c.errorf(at, "stack, attributes and link equal those of sample %d", other)
		} else {
			seen[identity] = i
		}
	}
}

// period checks that period and period type are both set or both not, and what
// is agreed for the known types.
func (c *checker) period(where string, p pprofile.Profile) {
	kind, period := c.valueType(p.SampleType()), c.valueType(p.PeriodType())
	if p.SampleType().TypeStrindex() == 0 || p.SampleType().UnitStrindex() == 0 {
		c.errorf(where, "sample_type %s is incomplete", kind)
	}
	typed := p.PeriodType().TypeStrindex() != 0 && p.PeriodType().UnitStrindex() != 0
	untyped := p.PeriodType().TypeStrindex() == 0 && p.PeriodType().UnitStrindex() == 0
	if p.Period() < 0 || p.Period() == 0 && !untyped || p.Period() > 0 && !typed {
		c.errorf(where, "period %d does not go with period_type %s", p.Period(), period)
	}
	switch kind {
	case onCPUType:
		if period != "cpu/nanoseconds" {
			c.errorf(where, "period_type %s of an on-CPU profile", period)
		}
	case offCPUType:
		if !untyped {
			c.errorf(where, "period_type %s of an off-CPU profile", period)
		}
	}
}

// shape is which of its lists a sample uses.
type shape string

const (
	noShape        shape = "neither values nor timestamps"
	valuesOnly     shape = "values only"
	timestampsOnly shape = "timestamps only"
	valuesAndTimes shape = "values and timestamps"
)

func shapeOf(s pprofile.Sample) shape {
	values, times := s.Values().Len() > 0, s.TimestampsUnixNano().Len() > 0
	switch {
	case values && times:
		return valuesAndTimes
	case values:
		return valuesOnly
	case times:
		return timestampsOnly
	}
	return noShape
}

func (c *checker) shapeFits(where string, p pprofile.Profile, is shape) {
	want := is
	switch c.valueType(p.SampleType()) {
	case onCPUType:
		want = timestampsOnly
	case offCPUType:
		want = valuesAndTimes
	}
	if is != want || is == noShape {
		c.errorf(where, "has %s", is)
	}
}

func (c *checker) sample(where string, p pprofile.Profile, s pprofile.Sample) {
	if s.StackIndex() == 0 {
		c.errorf(where, "stack_index is not set")
	}
	c.bound(where, "stack_index", stackTable, s.StackIndex())
	c.bound(where, "link_index", linkTable, s.LinkIndex())
	c.linkAttributes(where, s, c.attributes(where, s.AttributeIndices()))
	c.use(stackTable, s.StackIndex())
	c.use(linkTable, s.LinkIndex())
	c.useAll(attributeTable, s.AttributeIndices().AsRaw())

	if shapeOf(s) == valuesAndTimes && s.Values().Len() != s.TimestampsUnixNano().Len() {
		c.errorf(where, "%d values, but %d timestamps", s.Values().Len(), s.TimestampsUnixNano().Len())
	}
	if shapeOf(s) == valuesOnly && s.Values().Len() != 1 {
		c.errorf(where, "%d values without timestamps", s.Values().Len())
	}
	for i, t := range s.TimestampsUnixNano().All() {
		if t < uint64(p.Time()) || t-uint64(p.Time()) >= p.DurationNano() {
			c.errorf(where, "timestamp %d (%d) is outside of the profile's %d for %d ns", i, t, p.Time(), p.DurationNano())
			break // one sample's timestamps are wrong together
		}
	}
}

// linkAttributes checks that trace_id and span_id, if there, say what the link says.
func (c *checker) linkAttributes(where string, s pprofile.Sample, values map[string]pcommon.Value) {
	var trace, span string
	if i := s.LinkIndex(); i != 0 && c.inRange(linkTable, i) {
		l := c.dict.LinkTable().At(int(i))
		traceID, spanID := l.TraceID(), l.SpanID()
		trace, span = hex.EncodeToString(traceID[:]), hex.EncodeToString(spanID[:])
	}
	for key, want := range map[string]string{"trace_id": trace, "span_id": span} {
		if v, ok := values[key]; ok && (v.Type() != pcommon.ValueTypeStr || v.Str() != want) {
			c.errorf(where, "attribute %s = %q, but the link has %q", key, v.AsString(), want)
		}
	}
}
