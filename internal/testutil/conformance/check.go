package conformance

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// table is one of the tables of the dictionary.
type table int

const (
	stringTable table = iota
	attributeTable
	functionTable
	mappingTable
	locationTable
	stackTable
	linkTable
	numTables
)

func (t table) String() string {
	return [numTables]string{
		"string_table", "attribute_table", "function_table", "mapping_table",
		"location_table", "stack_table", "link_table",
	}[t]
}

// checker collects violations. Entries are marked as used when they are reached
// from a sample or a profile.
type checker struct {
	dict       pprofile.ProfilesDictionary
	errs       []error
	used       [numTables][]bool
	index      map[string]int32 // of the string table
	profileIDs map[pprofile.ProfileID]bool
}

// Check returns every violation found, and nothing for valid data. It does not
// change p.
func Check(p pprofile.Profiles) []error {
	c := &checker{
		dict:       p.Dictionary(),
		index:      map[string]int32{},
		profileIDs: map[pprofile.ProfileID]bool{},
	}
	for i, s := range c.dict.StringTable().All() {
		c.index[s] = int32(i)
	}
	for t, n := range c.lengths() {
		c.used[t] = make([]bool, n)
	}
	c.dictionary()
	for i, rp := range p.ResourceProfiles().All() {
		c.resource(fmt.Sprintf("resource_profiles[%d]", i), rp)
	}
	c.orphans()
	return c.errs
}

func (c *checker) lengths() [numTables]int {
	return [numTables]int{
		c.dict.StringTable().Len(), c.dict.AttributeTable().Len(), c.dict.FunctionTable().Len(),
		c.dict.MappingTable().Len(), c.dict.LocationTable().Len(), c.dict.StackTable().Len(),
		c.dict.LinkTable().Len(),
	}
}

func (c *checker) errorf(where, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// inRange reports whether index is within t. Index 0 always is: "not set".
func (c *checker) inRange(t table, index int32) bool {
	return index == 0 || index > 0 && int(index) < len(c.used[t])
}

// bound reports an index that is out of range as a violation.
func (c *checker) bound(where, field string, t table, index int32) bool {
	if c.inRange(t, index) {
		return true
	}
	c.errorf(where, "%s %d is outside of %v with %d entries", field, index, t, len(c.used[t]))
	return false
}

// use marks an entry and what it refers to as used. Indexes that are out of
// range have been reported elsewhere.
func (c *checker) use(t table, index int32) {
	if index == 0 || !c.inRange(t, index) || c.used[t][index] {
		return
	}
	c.used[t][index] = true
	i := int(index)
	switch t {
	case attributeTable:
		a := c.dict.AttributeTable().At(i)
		c.use(stringTable, a.KeyStrindex())
		c.use(stringTable, a.UnitStrindex())
	case functionTable:
		f := c.dict.FunctionTable().At(i)
		c.use(stringTable, f.NameStrindex())
		c.use(stringTable, f.SystemNameStrindex())
		c.use(stringTable, f.FilenameStrindex())
	case mappingTable:
		m := c.dict.MappingTable().At(i)
		c.use(stringTable, m.FilenameStrindex())
		c.useAll(attributeTable, m.AttributeIndices().AsRaw())
	case locationTable:
		l := c.dict.LocationTable().At(i)
		c.use(mappingTable, l.MappingIndex())
		c.useAll(attributeTable, l.AttributeIndices().AsRaw())
		for _, line := range l.Lines().All() {
			c.use(functionTable, line.FunctionIndex())
		}
	case stackTable:
		c.useAll(locationTable, c.dict.StackTable().At(i).LocationIndices().AsRaw())
	}
}

func (c *checker) useAll(t table, indexes []int32) {
	for _, i := range indexes {
		c.use(t, i)
	}
}

func (c *checker) orphans() {
	for t := range numTables {
		for i, used := range c.used[t] {
			if i > 0 && !used {
				c.errorf(fmt.Sprintf("%v[%d]", t, i), "nothing refers to it")
			}
		}
	}
}
