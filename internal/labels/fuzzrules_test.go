package labels

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzRules takes keys of rules, one a line, whose actions go round; then 0xfe and labels,
// each a key and a value with 0xfd between, separated by 0xfc. Values are text: a rename may
// bring bytes under a key that was text, which are written as text from then on.
func FuzzRules(f *testing.F) {
	var seeds [][]byte
	for _, s := range []string{
		"a*\nb?\n*c\nd\n*e*\n*\xfea\xfd1\xfcbb\xfd2\xfcabc\xfd3\xfcd\xfdlong value\xfcxex\xfd\xff\xfcz\xfd9",
		"a\nb\n?\n?\n\xfea\xfd1\xfcto\xfd1\xfcé\xfdx", "*a*a*a*a*b\n\xfeaaaaaaaaaaaaaaaaaaaaaaa\xfd", "\xfe",
	} {
		seeds = append(seeds, []byte(s))
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		patterns, rest, _ := bytes.Cut(data, []byte{0xfe})
		var rules []Rule
		for i, key := range bytes.Split(patterns, []byte("\n")) {
			r := Rule{Key: string(key), Action: Action(i % NumActions)}
			switch r.Action {
			case Rename:
				r.To = "to"
			case CapValueBytes:
				r.Limit = 3
			case CapDistinctValues:
				r.Limit = 1
			}
			if r.Validate() == nil && len(rules) < MaxRules {
				rules = append(rules, r)
			}
		}
		var list []raw
		seen := map[string]bool{}
		for _, l := range bytes.Split(rest, []byte{0xfc}) {
			key, value, _ := bytes.Cut(l, []byte{0xfd})
			value = bytes.ToValidUTF8(value, []byte("?"))
			if !seen[string(key)] && len(list) < 64 && len(key) <= 256 && len(value) <= 1024 && len(key)+len(value) < 1000 {
				seen[string(key)] = true
				list = append(list, kv(string(key), string(value)))
			}
		}
		r := newTestRegistry(t, func(o *Options) { o.Rules = rules })
		ch := r.NewChannel()
		section := v1(list...)
		if len(section) > 60_000 {
			return
		}
		want, matches := simply(rules, list)
		for range 2 {
			d := ch.Decode(of(alice), nil, section)
			require.Equal(t, want, collected(d.Set))
			r.Count(d)
			for _, l := range list { // one after the other, past any caps
				ch.Decode(of(alice), nil, v1(l))
			}
			ch.EndInterval(0)
		}
		for i, n := range matches {
			require.Equal(t, 2*n, r.RuleMatches(i))
		}
	})
}

// simply is the effect of rules on labels with different keys, the simple way.
func simply(rules []Rule, list []raw) (out []Label, matches []uint64) {
	matches = make([]uint64, len(rules))
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b raw) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	set, renamed := map[string]string{}, map[string]string{}
	for _, l := range list {
		i := slices.IndexFunc(rules, func(r Rule) bool { return r.Key == "" || simplyMatches(characters(r.Key), characters(l.key)) })
		if i < 0 {
			set[l.key] = l.value
			continue
		}
		matches[i]++
		switch rules[i].Action {
		case Drop:
		case Rename:
			if _, ok := renamed["to"]; !ok {
				renamed["to"] = l.value
			}
		case Hash:
			mac := hmac.New(sha256.New, []byte("salt"))
			mac.Write([]byte(l.key + "\x00" + l.value))
			set[l.key] = hex.EncodeToString(mac.Sum(nil))[:32]
		case CapValueBytes:
			set[l.key] = l.value
			if len(l.value) > 3 {
				set[l.key] = string(trimRune([]byte(l.value[:3])))
			}
		default: // of one set each value is the first of its key
			set[l.key] = l.value
		}
	}
	if _, ok := set["to"]; !ok && len(renamed) > 0 {
		set["to"] = renamed["to"]
	}
	for key, value := range set {
		out = append(out, Label{key, value, record.ABIV1})
	}
	slices.SortFunc(out, func(a, b Label) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
	return out, matches
}

func characters(s string) (out []string) {
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// simplyMatches tells it by a table: does the pattern's beginning match the key's.
func simplyMatches(pattern, key []string) bool {
	row := make([]bool, len(key)+1)
	row[0] = true
	for _, p := range pattern {
		next := make([]bool, len(key)+1)
		next[0] = row[0] && p == "*"
		for i, k := range key {
			if p == "*" {
				next[i+1] = next[i] || row[i+1]
			} else {
				next[i+1] = row[i] && (p == "?" || p == k)
			}
		}
		row = next
	}
	return row[len(key)]
}
