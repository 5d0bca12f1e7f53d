package labels

import "slices"

// Cache decodes label sections and remembers the results, so that a section
// seen before costs one map lookup and no allocation. It belongs to one
// goroutine.
type Cache struct {
	// Promotion of labels to links. It is set before the first Decode.
	Promotion Promotion

	maxBytes int
	bytes    int
	decoded  map[cacheKey]*Decoded
	sets     map[string]*Set // by canonical encoding
	decoder  decoder
}

// cacheKey has all that a result depends on.
type cacheKey struct {
	keys    *KeyMap
	section string
}

// Rough costs of an entry beside its bytes, map buckets included.
const (
	decodedBytes = 192
	setBytes     = 128
	labelBytes   = 40
	readBytes    = 2
)

var emptyDecoded = &Decoded{Set: emptySet}

// NewCache returns an empty cache that is full at about maxBytes.
func NewCache(maxBytes int) *Cache {
	c := &Cache{maxBytes: maxBytes}
	c.Reset()
	return c
}

// Decode returns the meaning of the label section of a sample record (label
// blocks as in internal/bpf/src/record.h, little endian). keys names the
// thread context's key indexes. Decode keeps no reference to section.
//
// While the cache lives, equal arguments give the same pointer until the cache
// is full, and equal sets have the same pointer always. A full cache still
// decodes rightly; it remembers no further sections, only the sets it gives out.
func (c *Cache) Decode(keys *KeyMap, section []byte) *Decoded {
	if len(section) == 0 {
		return emptyDecoded
	}
	if d, ok := c.decoded[cacheKey{keys: keys, section: string(section)}]; ok {
		return d
	}
	d := c.decode(keys, section)
	if !c.Full() {
		c.decoded[cacheKey{keys: keys, section: string(section)}] = d
		c.bytes += decodedBytes + len(section) + readBytes*len(d.Reads)
	}
	return d
}

// Full reports whether the cache has reached its bound. The caller then hands
// over what still refers to its sets and calls Reset.
func (c *Cache) Full() bool { return c.bytes >= c.maxBytes }

// Bytes returns an estimate of the memory in use.
func (c *Cache) Bytes() int { return c.bytes }

// Reset forgets everything. Sets given out before stay valid, but are no longer
// identical to equal sets decoded later.
func (c *Cache) Reset() {
	c.bytes = 0
	c.decoded = make(map[cacheKey]*Decoded)
	c.sets = map[string]*Set{string(appendSetHead(nil, false)): emptySet}
}

// decode decodes a section and shares its set.
func (c *Cache) decode(keys *KeyMap, section []byte) *Decoded {
	d := &c.decoder
	d.decode(keys, section)
	d.merge()
	d.promote(&c.Promotion)
	d.canonical = d.appendCanonical(d.canonical[:0])
	result := d.out
	result.Reads = slices.Clone(d.reads)
	result.Set = c.sets[string(d.canonical)]
	if result.Set == nil {
		encoding := string(d.canonical)
		result.Set = d.newSet(encoding)
		c.sets[encoding] = result.Set
		c.bytes += setBytes + len(encoding) + labelBytes*len(d.entries)
	}
	clear(d.entries) // they point into section
	return &result
}
