package labels

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// hashBytes of a keyed hash are kept: equal ones of different values do not happen.
const hashBytes = 16

// ruleSet is what rules there are for a user's processes of one executable. The nil
// ruleSet has none.
type ruleSet struct {
	rules []*compiled // in order
	salt  []byte
	known bool // it is looked up rather than made each time
}

// match is how many labels of a set a rule was applied to: a thread context alone has up to 256.
type match struct {
	rule   uint8
	labels uint16
}

// first returns the rule for a label, or nil.
func (s *ruleSet) first(key []byte, source record.ABI) *compiled {
	for _, r := range s.rules {
		if r.applies(key, source) {
			return r
		}
	}
	return nil
}

// apply changes the merged labels: of each the first rule that applies, and no other.
func (s *ruleSet) apply(d *decoder, t *tally) {
	if s == nil {
		return
	}
	renamed := false
	kept := d.entries[:0]
	for i := range d.entries {
		e := d.entries[i]
		r := s.first(e.key, e.source)
		if r == nil {
			kept = append(kept, e)
			continue
		}
		t.matched(r.number)
		switch r.Action {
		case Drop:
			continue
		case Rename:
			renamed = true
			e.key, e.renamed = r.to, true
		case Hash:
			e.value = s.hash(e.key, e.value)
		case CapValueBytes:
			if len(e.value) > r.Limit {
				e.value = trimRune(e.value[:r.Limit])
				d.cut = true
				d.out.Counts[AnomalyTruncatedValue]++
			}
		case CapDistinctValues:
			e.limit = r.Limit
		}
		kept = append(kept, e)
	}
	clear(d.entries[len(kept):])
	d.entries = kept
	if renamed {
		d.settleNames()
	}
}

// settleNames leaves one label a key again: the one that had it before, else the one
// whose old key sorts first.
func (d *decoder) settleNames() {
	slices.SortStableFunc(d.entries, func(a, b entry) int {
		if c := bytes.Compare(a.key, b.key); c != 0 || a.renamed == b.renamed {
			return c
		}
		if a.renamed {
			return 1
		}
		return -1
	})
	all := len(d.entries)
	d.entries = slices.CompactFunc(d.entries, func(a, b entry) bool { return bytes.Equal(a.key, b.key) })
	d.out.Counts[AnomalyRenameConflict] += uint32(all - len(d.entries))
}

// hash is the same for the same key, value and salt.
func (s *ruleSet) hash(key, value []byte) []byte {
	mac := hmac.New(sha256.New, s.salt)
	mac.Write(key)
	mac.Write([]byte{0})
	mac.Write(value)
	return []byte(hex.EncodeToString(mac.Sum(nil)[:hashBytes]))
}
