package labels

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzSection takes names of keys, one a line, then 0xff and a label section.
func FuzzSection(f *testing.F) {
	var seeds [][]byte
	add := func(section []byte, keyNames string) { seeds = append(seeds, join([]byte(keyNames+"\xff"), section)) }
	add(nil, "a\nb")
	for _, section := range benchSections() {
		add(section, "zero\none\ntwo\none")
	}
	add(join(v0(raw{"ab", "cut", 3, 3}, kv("ab", "")), v1(kv("a", "1"), kv("a", "2"))), "")
	add(contextRecord{link: Link{SpanID: [8]byte{1}}, valid: 1, size: 10, attrs: join(attr(3, "a"), []byte{1})}.block(), "a\n\n\na")
	add(v1(kv("a", "b"))[:record.LabelBlockBytes+5], "")
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		keyNames, section, _ := bytes.Cut(data, []byte{0xff})
		check(t, NewKeyMap(strings.Split(string(keyNames), "\n")), section)
	})
}

// Sections that are mostly right reach deeper than bytes at random.
func TestDecodeAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		section := randomSection(r)
		if len(section) > 0 && r.IntN(2) == 0 {
			section[r.IntN(len(section))] = byte(r.Uint32() >> r.IntN(32))
		}
		if r.IntN(8) == 0 {
			section = section[:r.IntN(len(section)+1)]
		}
		check(t, names, section)
		if t.Failed() {
			t.Logf("section: %q", section)
			return
		}
	}
}

// randomSection has few different keys and values, so that they often collide.
func randomSection(r *rand.Rand) []byte {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var section []byte
	for range r.IntN(5) {
		outcome := record.OutcomePresent + record.Outcome(r.IntN(2))
		if r.IntN(6) == 0 {
			outcome = record.Outcome(r.IntN(record.NumOutcomes + 1))
		}
		abi := record.ABI(1 + r.IntN(record.NumABIs-1))
		if !abi.ThreadContext() {
			var labels []raw
			for range r.IntN(6) {
				l := kv(pick("", "a", "b", "zero", "one"), pick("", "1", "2", "caf\xc3"))
				l.keyLen, l.valueLen = uint32(r.IntN(8)), uint32(r.IntN(8))
				labels = append(labels, l)
			}
			section = append(section, custom(abi, outcome, labels...)...)
			continue
		}
		c := contextRecord{link: Link{TraceID: [16]byte{byte(r.IntN(3))}, SpanID: [8]byte{byte(r.IntN(3))}}, valid: 1}
		for range r.IntN(6) {
			c.attrs = append(c.attrs, attr(byte(r.IntN(6)), pick("", "1", "2", "caf\xc3\xa9"))...)
		}
		c.size = len(c.attrs)
		c.attrs = c.attrs[:r.IntN(len(c.attrs)+1)]
		if r.IntN(2) == 0 {
			c.size = len(c.attrs)
		}
		section = append(section, blockOf(abi, outcome, 0, 0, c.payload())...)
	}
	return section
}

// check decodes section and holds the result against the invariants and the oracle.
func check(t testing.TB, keys *KeyMap, section []byte) {
	t.Helper()
	d := Decode(keys, section)

	previous, first := "", true
	for l := range d.Set.All() {
		require.True(t, first || l.Key > previous, "sorted and unique")
		require.True(t, l.Source > record.ABINone && l.Source < record.NumABIs)
		previous, first = l.Key, false
	}
	require.Equal(t, d.Link.TraceID == [16]byte{}, d.Link.SpanID == [8]byte{}, "both ids or neither")
	for _, r := range d.Reads {
		require.Less(t, r.Outcome, record.Outcome(record.NumOutcomes))
	}
	if len(section) == 0 {
		return
	}

	want := oracle(keys, section)
	require.Equal(t, want.labels, setMap(d.Set))
	require.Equal(t, want.reads, d.Reads)
	require.Equal(t, want.link, d.Link)
	require.Equal(t, d.Counts[AnomalyTruncatedSet] > 0 || want.overridden, d.Set.Truncated())

	// The scratch memory of an earlier section must not show.
	var used decoder
	used.decode(names, join(v0(kv("q", "r")), contextRecord{link: linkB, valid: 1, attrs: join(attr(0, "x"), attr(5, "y"))}.block()))
	used.merge()
	used.decode(keys, section)
	used.merge()
	require.Equal(t, d.Set, used.newSet())
	require.Equal(t, d.Reads, used.reads)
	used.out.Set, used.out.Reads = d.Set, d.Reads
	require.Equal(t, *d, used.out)
}

func FuzzTrimRune(f *testing.F) {
	f.Add("caf\xc3")
	f.Add("\xf0\x9f\x98")
	f.Add("\x80\x80\x80")
	f.Fuzz(func(t *testing.T, s string) {
		got := string(trimRune([]byte(s)))
		require.True(t, strings.HasPrefix(s, got))
		require.LessOrEqual(t, len(s)-len(got), 3)
		// Cut any text anywhere: what is left of it is a prefix of whole runes.
		text := strings.ToValidUTF8(s, "\u00e9")
		for cut := range len(text) {
			left := string(trimRune([]byte(text[:cut])))
			require.Equal(t, text[:len(left)], left)
			require.Equal(t, strings.ToValidUTF8(left, ""), left)
			require.Less(t, cut-len(left), 4)
		}
	})
}

// label without its key.
type value struct {
	value  string
	source record.ABI
}

func setMap(s *Set) map[string]value {
	m := map[string]value{}
	for l := range s.All() {
		m[l.Key] = value{l.Value, l.Source}
	}
	return m
}

// oracleResult is what the oracle has an opinion on.
type oracleResult struct {
	labels map[string]value
	reads  []Read
	link   Link
	// overridden: a label or the link may be, by a source that could not be read.
	overridden bool
}

type oracleLabel struct {
	value  string
	source record.ABI
	cutKey bool
	lost   bool
	block  int
}

// oracle decodes with the simplest means: maps, strings, one source after the
// other from the weakest to the strongest.
func oracle(keys *KeyMap, section []byte) oracleResult {
	r := oracleResult{labels: map[string]value{}}
	bySource := map[record.ABI][]map[string]oracleLabel{}
	linkBlock := -1
	for len(section) > 0 {
		if len(section) < 16 || 16+int(section[2])+int(section[3])<<8 > len(section) {
			abi := record.ABINone
			if len(section) >= 16 {
				abi = record.ABI(section[0])
			}
			r.reads = append(r.reads, Read{abi, record.OutcomeInvalid})
			break
		}
		n := int(section[2]) + int(section[3])<<8
		abi, payload := record.ABI(section[0]), string(section[16:16+n])
		found, outcome := map[string]oracleLabel(nil), record.Outcome(section[1])
		switch {
		case abi == 0 || abi >= record.NumABIs || outcome > record.OutcomeNoRows:
			outcome = record.OutcomeInvalid
		case outcome != record.OutcomePresent && outcome != record.OutcomeTruncated:
		case abi.ThreadContext():
			var link Link
			found, link, outcome = oracleContext(keys, payload, outcome)
			if r.link == (Link{}) && link.TraceID != [16]byte{} && link.SpanID != [8]byte{} {
				r.link, linkBlock = link, len(r.reads)
			}
		default:
			found, outcome = oracleCustom(abi, payload, outcome)
		}
		for key, l := range found {
			l.block = len(r.reads)
			found[key] = l
		}
		r.reads = append(r.reads, Read{abi, outcome})
		if abi.ThreadContext() {
			abi = record.ABIThreadContext
		}
		bySource[abi] = append(bySource[abi], found)
		section = section[min(16+(n+7)/8*8, len(section)):]
	}
	all := map[string]oracleLabel{}
	order := []record.ABI{record.ABIGo, record.ABINone, record.ABIV0, record.ABIV1, record.ABIThreadContext}
	for _, abi := range order {
		for _, found := range slices.Backward(bySource[abi]) {
			for key, l := range found {
				if old, ok := all[key]; !ok || old.cutKey || !l.cutKey {
					all[key] = l
				}
			}
		}
	}
	place := func(abi record.ABI) int {
		if i := slices.Index(order, abi); i >= 0 {
			return i
		}
		if abi.ThreadContext() {
			return 4
		}
		return 5
	}
	for key, l := range all {
		if l.lost {
			continue
		}
		r.labels[key] = value{l.value, l.source}
		for block, read := range r.reads {
			before := place(read.ABI) > place(l.source) || place(read.ABI) == place(l.source) && block < l.block
			r.overridden = r.overridden || before && failed(read)
		}
	}
	for block, read := range r.reads {
		r.overridden = r.overridden || read.ABI.ThreadContext() && block < linkBlock && failed(read)
	}
	return r
}

func failed(r Read) bool {
	switch r.Outcome {
	case record.OutcomeFault, record.OutcomeUpdating, record.OutcomeInvalid, record.OutcomeNoThreadPointer:
		return true
	}
	return false
}

func oracleCustom(abi record.ABI, p string, outcome record.Outcome) (map[string]oracleLabel, record.Outcome) {
	found := map[string]oracleLabel{}
	for p != "" {
		if len(p) < 12 {
			return nil, record.OutcomeInvalid
		}
		u32 := func(at int) uint64 { return uint64(binary.LittleEndian.Uint32([]byte(p[at : at+4]))) }
		keyLen, valueLen := u32(0), u32(4)
		keyBytes, valueBytes := u32(8)&0xffff, u32(8)>>16
		p = p[12:]
		if keyBytes > keyLen || valueBytes > valueLen || keyBytes+valueBytes > uint64(len(p)) {
			return nil, record.OutcomeInvalid
		}
		key, v := p[:keyBytes], p[keyBytes:keyBytes+valueBytes]
		p = p[keyBytes+valueBytes:]
		if keyBytes < keyLen || valueBytes < valueLen {
			outcome = record.OutcomeTruncated
		}
		if keyBytes < keyLen {
			key = string(trimRune([]byte(key)))
		}
		if valueBytes < valueLen {
			v = string(trimRune([]byte(v)))
		}
		if old, ok := found[key]; !ok || old.cutKey && keyBytes == keyLen {
			found[key] = oracleLabel{value: v, source: abi, cutKey: keyBytes < keyLen}
		}
	}
	return found, outcome
}

func oracleContext(keys *KeyMap, p string, outcome record.Outcome) (map[string]oracleLabel, Link, record.Outcome) {
	if p == "" && outcome == record.OutcomeTruncated {
		return nil, Link{}, outcome
	}
	if len(p) < 28 || p[24] > 1 {
		return nil, Link{}, record.OutcomeInvalid
	}
	if p[24] == 0 {
		return nil, Link{}, record.OutcomeUpdating
	}
	size, attrs := int(p[26])+int(p[27])<<8, p[28:]
	if len(attrs) < size {
		outcome = record.OutcomeTruncated
	} else {
		attrs = attrs[:size]
	}
	found := map[string]oracleLabel{}
	for size >= 2 && attrs != "" {
		name, known := keys.Name(attrs[0])
		l := oracleLabel{source: record.ABIThreadContext}
		if len(attrs) == 1 {
			l.lost = true
		} else if n := 2 + int(attrs[1]); n > size {
			break
		} else if n > len(attrs) {
			l.value = string(trimRune([]byte(attrs[2:])))
		} else {
			l.value = attrs[2:n]
		}
		if known {
			found[name] = l
		}
		used := len(attrs)
		if !l.lost {
			used = min(used, 2+int(attrs[1]))
		}
		size, attrs = size-used, attrs[used:]
	}
	return found, Link{TraceID: [16]byte([]byte(p[:16])), SpanID: [8]byte([]byte(p[16:24]))}, outcome
}
