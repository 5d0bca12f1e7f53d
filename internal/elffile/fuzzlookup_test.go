package elffile_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// maxFuzzSymbols and maxFuzzNameBytes keep an execution short; names of 1 KiB and
// more are not looked up at all.
const (
	maxFuzzSymbols   = 16
	maxFuzzNameBytes = 200
)

// lookupCase is what FuzzLookup makes of its input: a symbol table, the shape of
// its hash tables, names to look up, and bytes to damage it with.
//
//	[0] bit 0: GNU hash table, bit 1: DT_HASH (none: both)
//	[1] buckets  [2] bloom filter  [3] bytes of damage, in threes
//	then names that end with 0; their first byte has flags
type lookupCase struct {
	gnu, sysv         bool
	buckets           int
	bloomWords, shift uint32
	damage            []byte
	symbols           []imageSymbol
	firstHashed       int
}

func (c *lookupCase) parse(data []byte) bool {
	if len(data) < 5 {
		return false
	}
	c.gnu, c.sysv = data[0]&1 != 0, data[0]&2 != 0
	if !c.gnu && !c.sysv {
		c.gnu, c.sysv = true, true
	}
	c.buckets = int(data[1]%7) + 1
	c.bloomWords, c.shift = 1<<(data[2]%3), uint32(data[2]/3)%32
	damage := min(3*int(data[3]%16), len(data)-4)
	data, c.damage = data[4:len(data)-damage], data[len(data)-damage:]
	c.symbols = c.symbols[:0]
	for len(data) > 0 && len(c.symbols) < maxFuzzSymbols {
		entry, rest, _ := bytes.Cut(data, []byte{0})
		data = rest
		entry = entry[:min(len(entry), maxFuzzNameBytes)]
		if len(entry) > 1 {
			c.symbols = append(c.symbols, imageSymbol{name: entry[1:], undefined: entry[0]&1 != 0, hidden: entry[0]&2 != 0})
		}
	}
	c.sort()
	return true
}

// sort brings the symbols into the order of a GNU hash table: first those that
// it leaves out, then the others by bucket.
func (c *lookupCase) sort() {
	bucket := func(s *imageSymbol) int {
		if s.undefined {
			return -1
		}
		return int(gnuHashOf(s.name) % uint32(c.buckets))
	}
	slices.SortStableFunc(c.symbols, func(a, b imageSymbol) int { return bucket(&a) - bucket(&b) })
	c.firstHashed = 1
	for _, s := range c.symbols {
		if s.undefined {
			c.firstHashed++
		}
	}
}

// scan is the reference: the first definition of a name that is its default
// version, or else the first one. 0: none.
func (c *lookupCase) scan(name string) (index uint32) {
	for i, s := range c.symbols {
		if s.undefined || string(s.name) != name {
			continue
		}
		if !s.hidden {
			return uint32(i + 1)
		}
		if index == 0 {
			index = uint32(i + 1)
		}
	}
	return index
}

// FuzzLookup holds the lookup by hash against a scan of the whole table. In a
// damaged file the lookup may fail, but what it finds must be there.
func FuzzLookup(f *testing.F) {
	seeds := [][]byte{
		[]byte("\x01\x03\x12\x00 a\x00 b\x00 custom_labels_current_set\x00!undefined\x00"),
		[]byte("\x02\x03\x12\x00 a\x00\"a\x00 aa\x00!a\x00 otel_thread_ctx_v1\x00"),
		[]byte("\x00\x00\x00\x00\"a\x00 a\x00 Ab\x00 BA\x00 bA\x00"),
		[]byte("\x01\x01\x47\x02 x\x00 y\x00 z\x00\x20\x01\xff\x28\x01\x00"),
	}
	var c lookupCase
	var m image
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if !c.parse(data) {
			return
		}
		m.reset()
		m.symbols(c.symbols, c.gnu, c.sysv, c.buckets, c.firstHashed, c.bloomWords, c.shift)
		b := m.finish()
		for d := c.damage; len(d) >= 3; d = d[3:] {
			if at := int(binary.LittleEndian.Uint16(d)); at < len(b) {
				b[at] = d[2]
			}
		}
		e, err := m.open()
		if err != nil {
			if len(c.damage) < 3 {
				t.Fatal(err)
			}
			return
		}
		for _, name := range lookupNames(c.symbols) {
			got, ok, err := e.DynamicSymbol(name)
			if len(c.damage) < 3 {
				if want := c.scan(name); err != nil || ok != (want != 0) || got.Index != want || ok && got.Value != uint64(want)+1000 {
					t.Fatalf("%q: %+v %v %v, the scan finds symbol %d of %d", name, got, ok, err, want, len(c.symbols))
				}
			} else if ok && (err != nil || got.Name != name || !got.Defined()) {
				t.Fatalf("%q: %+v %v", name, got, err)
			}
		}
	})
}

// lookupNames are the names of the first symbols, and one that few files have.
func lookupNames(symbols []imageSymbol) []string {
	names := []string{"a"}
	for i := 0; i < len(symbols) && len(names) < 5; i++ {
		names = append(names, string(symbols[i].name))
	}
	return names
}
