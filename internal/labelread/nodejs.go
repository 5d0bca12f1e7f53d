package labelread

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// Layout of otel_thread_ctx_nodejs_v1, as in @datadog/pprof 5.20: where V8 keeps
// the continuation-preserved embedder data, where it keeps the AsyncLocalStorage,
// the identity hash of that, the offset of the record pointer in a value (0: not
// told), JavaScript's undefined.
const (
	nodeBytes     = 32
	nodeSlot      = 0
	nodeHandle    = 8
	nodeHash      = 16
	nodeField     = 20
	nodeUndefined = 24
)

// Layout of V8's heap without pointer compression. Offsets are from the address
// of an object.
const (
	heapTag         = 1  // of a pointer to an object
	mapInstanceType = 12 // Map
	collectionTable = 24 // JSCollection
	fixedLength     = 8  // FixedArray
	tableElements   = 16 // OrderedHashMap: a FixedArray of ...
	tableDeleted    = 24
	tableBuckets    = 32
	tableFirst      = 40 // ... the buckets, then the entries

	bucketBytes      = 8
	entryBytes       = 24 // key, value, index of the next entry
	entriesPerBucket = 2
)

// nodeJS follows the way to the record of the async context that runs.
func (s *source) nodeJS(addr uint64, layout v8heap.Layout) record.Outcome {
	var variable [nodeBytes]byte
	if err := s.mem.ReadAt(variable[:], addr); err != nil {
		return s.fault("the variable", err)
	}
	at := func(off int) uint64 { return binary.LittleEndian.Uint64(variable[off:]) }
	hash := binary.LittleEndian.Uint32(variable[nodeHash:])
	field := binary.LittleEndian.Uint32(variable[nodeField:])
	s.Pointer = at(nodeSlot)
	if at(nodeSlot) == 0 || at(nodeHandle) == 0 {
		return record.OutcomeNone // this thread has not begun
	}
	if field != 0 && field != uint32(layout.Field) {
		return s.invalid("the writer has records at %#x of an object, V8 at %#x", field, layout.Field)
	}
	h := heap{source: s, undefined: at(nodeUndefined)}
	value, outcome := h.current(at(nodeSlot), at(nodeHandle), hash, layout.MapType)
	if outcome != record.OutcomePresent {
		return outcome
	}
	context, outcome := h.record(value, uint64(layout.Field))
	if outcome != record.OutcomePresent {
		return outcome
	}
	return s.threadContext(context, true)
}

// heap reads V8's heap.
type heap struct {
	*source
	undefined uint64
}

// current returns the value that the current async context has for a key, both
// known by where V8 keeps them.
func (h *heap) current(slot, handle uint64, hash uint32, mapType uint16) (value uint64, outcome record.Outcome) {
	context, err := h.word(slot)
	if err != nil {
		return 0, h.fault("the current async context", err)
	}
	key, err := h.word(handle)
	if err != nil {
		return 0, h.fault("the AsyncLocalStorage", err)
	}
	if context == h.undefined {
		return 0, record.OutcomeNone
	}
	if !isObject(key) {
		return 0, h.invalid("%#x is no AsyncLocalStorage", key)
	}
	frame, kind, outcome := h.object("the async context", context)
	if outcome != record.OutcomePresent {
		return 0, outcome
	}
	table, err := h.word(frame + collectionTable)
	if err != nil {
		return 0, h.fault("the async context", err)
	}
	var b [2]byte
	if err := h.mem.ReadAt(b[:], kind+mapInstanceType); err != nil {
		return 0, h.fault("the type of the async context", err)
	}
	if t := binary.LittleEndian.Uint16(b[:]); t != mapType {
		return 0, h.invalid("an async context of type %d, not %d", t, mapType)
	}
	return h.lookUp(table, key, hash)
}

// lookUp returns what an OrderedHashMap has for a key.
func (h *heap) lookUp(tagged, key uint64, hash uint32) (value uint64, outcome record.Outcome) {
	table, _, outcome := h.object("the hash table", tagged)
	if outcome != record.OutcomePresent {
		return 0, outcome
	}
	var counts [4]uint64 // length, elements, deleted, buckets
	for i, off := range [4]uint64{fixedLength, tableElements, tableDeleted, tableBuckets} {
		word, err := h.word(table + off)
		if err != nil {
			return 0, h.fault("the hash table", err)
		}
		if uint32(word) != 0 {
			return 0, h.invalid("a hash table with %#x at %d", word, off)
		}
		counts[i] = word >> 32
	}
	length, buckets := counts[0], counts[3]
	capacity := entriesPerBucket * buckets
	if buckets > record.MaxNodeJSBuckets || buckets&(buckets-1) != 0 || length != 3+buckets+3*capacity {
		return 0, h.invalid("a hash table of %d words with %d buckets", length, buckets)
	}
	if buckets == 0 {
		return 0, record.OutcomeNone
	}
	next, err := h.word(table + tableFirst + bucketBytes*(uint64(hash)&(buckets-1)))
	if err != nil {
		return 0, h.fault("a bucket", err)
	}
	return h.chain(table+tableFirst+bucketBytes*buckets, capacity, next, key)
}

// chain looks for a key along the entries of a bucket.
func (h *heap) chain(entries, capacity, next, key uint64) (value uint64, outcome record.Outcome) {
	for range record.MaxNodeJSChain {
		if int64(next) == -1<<32 {
			return 0, record.OutcomeNone
		}
		if uint32(next) != 0 || next>>32 >= capacity {
			return 0, h.invalid("an entry %#x of %d", next, capacity)
		}
		var entry [entryBytes]byte
		if err := h.mem.ReadAt(entry[:], entries+entryBytes*(next>>32)); err != nil {
			return 0, h.fault("an entry", err)
		}
		if binary.LittleEndian.Uint64(entry[:]) == key {
			return binary.LittleEndian.Uint64(entry[8:]), record.OutcomePresent
		}
		next = binary.LittleEndian.Uint64(entry[16:])
	}
	if int64(next) == -1<<32 {
		return 0, record.OutcomeNone
	}
	return 0, h.invalid("more than %d entries in a bucket", record.MaxNodeJSChain)
}

// record returns the pointer in a value's first internal field.
func (h *heap) record(value, field uint64) (addr uint64, outcome record.Outcome) {
	if value == h.undefined {
		return 0, record.OutcomeNone
	}
	object, _, outcome := h.object("the value", value)
	if outcome != record.OutcomePresent {
		return 0, outcome
	}
	addr, err := h.word(object + field)
	if err != nil {
		return 0, h.fault("the value", err)
	}
	if addr == 0 || addr&heapTag != 0 {
		return 0, h.invalid("a value whose record is %#x", addr)
	}
	return addr, record.OutcomePresent
}

// object returns the addresses of an object and of its map. An object that the collector
// has moved has its new address, without tag, where the map was.
func (h *heap) object(what string, tagged uint64) (addr, kind uint64, outcome record.Outcome) {
	if !isObject(tagged) {
		return 0, 0, h.invalid("%s: %#x is no object", what, tagged)
	}
	addr = tagged - heapTag
	kind, err := h.word(addr)
	if err != nil {
		return 0, 0, h.fault(what, err)
	}
	if kind != 0 && kind&7 == 0 {
		addr = kind
		if kind, err = h.word(addr); err != nil {
			return 0, 0, h.fault(what+", which has moved", err)
		}
	}
	if kind&heapTag == 0 {
		return 0, 0, record.OutcomeUpdating
	}
	return addr, kind - heapTag, record.OutcomePresent
}

func isObject(word uint64) bool { return word&3 == heapTag }
