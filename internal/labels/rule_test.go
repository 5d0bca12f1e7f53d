package labels

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func TestPattern(t *testing.T) {
	for _, tc := range []struct {
		pattern, key string
		want         bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"*", "anything", true},
		{"http.*", "http.route", true}, {"http.*", "http.", true}, {"http.*", "http", false}, {"*.id", "user.id", true},
		{"*.id", "user.ids", false}, {"*secret*", "my.secret.key", true}, {"*secret*", "my.secre", false},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "acb", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"?", "é", true},
		{"??", "é", false}, {"*??", "€", false}, {"?*", "\xff", true}, {"a**c", "abc", true}, {"*é", "caf\xc3\xa9", true},
	} {
		p, err := newPattern(tc.pattern)
		require.NoError(t, err)
		require.Equal(t, tc.want, p.matches([]byte(tc.key)), "%q %q", tc.pattern, tc.key)
	}
	_, err := newPattern("\xff")
	require.ErrorContains(t, err, "key must be valid UTF-8")
	_, err = newPattern(strings.Repeat("a", MaxPatternBytes+1))
	require.ErrorContains(t, err, "key must have at most 256 bytes, not 257")
}

// A rule that could match nothing would let the label that it is about leave the host.
func TestRuleThatLooksLikeARegularExpression(t *testing.T) {
	for key, want := range map[string]string{
		"^tenant$": "tenant", `^http\..*$`: "http.*", "user.+": "user?*", "(tenant|user)": "tenant?user", "id[0-9]": "id?",
		"tenant$": "tenant", `a\d`: "ad",
	} {
		err := (&Rule{Key: key, Action: Drop}).Validate()
		require.ErrorContains(t, err, "looks like a regular expression", key)
		require.ErrorContains(t, err, strconv.Quote(want), key)
		require.NoError(t, (&Rule{Key: want, Action: Drop}).Validate(), key)
	}
	for _, key := range []string{"", "*", "http.*", "http.?", "a$b", "price^2", "a+b", "{a}", "a,b", "trace id"} {
		require.NoError(t, (&Rule{Key: key, Action: Drop}).Validate(), key)
	}
	for _, executable := range []string{"python3", "usr/bin/*", "^/usr", "**shop", "{/usr,opt}/**"} {
		require.ErrorContains(t, (&Rule{Executable: executable, Action: Drop}).Validate(), "executable must begin with / or **", executable)
	}
	for _, executable := range []string{"/usr/**", "**/python3", "{/usr,/opt}/**"} {
		require.NoError(t, (&Rule{Executable: executable, Action: Drop}).Validate(), executable)
	}
}

func ruled(t testing.TB, rules ...Rule) (*Registry, *Channel) {
	r := newTestRegistry(t, func(o *Options) { o.Rules = rules })
	return r, r.NewChannel()
}

func TestRules(t *testing.T) {
	long := strings.Repeat("é", 10)
	for name, tc := range map[string]struct {
		rules     []Rule
		section   []byte
		want      []Label
		truncated bool
		counts    Counts
		matches   []uint64
	}{
		"first wins": {
			[]Rule{{Key: "a", Action: Keep}, {Key: "?", Action: Drop}, {Action: Rename, To: "x"}},
			v1(kv("a", "1"), kv("b", "2"), kv("cc", "3")),
			[]Label{{"a", "1", record.ABIV1}, {"x", "3", record.ABIV1}}, false, Counts{}, []uint64{1, 1, 1},
		},
		"source": {
			[]Rule{{Source: record.ABIV0, Action: Drop}, {Source: record.ABIThreadContext, Action: Drop}},
			join(v0(kv("a", "1")), v1(kv("b", "2")), contextRecord{valid: 1, attrs: attr(0, "3")}.block()),
			[]Label{{"b", "2", record.ABIV1}}, false, Counts{}, []uint64{1, 1},
		},
		"executable and user": {
			[]Rule{
				{Key: "a", Executable: "/usr/*/1000", UIDs: []uint32{1, 1000}, Action: Drop}, {Key: "b", Executable: "/usr/*", Action: Drop},
				{Key: "c", UIDs: []uint32{1001}, Action: Drop},
			},
			v1(kv("a", "1"), kv("b", "2"), kv("c", "3")),
			[]Label{{"b", "2", record.ABIV1}, {"c", "3", record.ABIV1}}, false, Counts{}, []uint64{1, 0, 0},
		},
		"rename": {
			[]Rule{{Key: "a", Action: Rename, To: "z"}}, v1(kv("a", "1"), kv("m", "2")),
			[]Label{{"m", "2", record.ABIV1}, {"z", "1", record.ABIV1}}, false, Counts{}, []uint64{1},
		},
		"renamed onto one that is there": {
			[]Rule{{Key: "{ab}", Action: Drop}, {Key: "a", Action: Rename, To: "b"}}, v1(kv("a", "1"), kv("b", "2")),
			[]Label{{"b", "2", record.ABIV1}}, false, Counts{AnomalyRenameConflict: 1}, []uint64{0, 1},
		},
		"renamed onto each other": {
			[]Rule{{Key: "?", Action: Rename, To: "zz"}}, v1(kv("b", "2"), kv("a", "1")),
			[]Label{{"zz", "1", record.ABIV1}}, false, Counts{AnomalyRenameConflict: 1}, []uint64{2},
		},
		"renamed is not looked at again": {
			[]Rule{{Key: "a", Action: Rename, To: "b"}, {Key: "b", Action: Drop}}, v1(kv("a", "1")),
			[]Label{{"b", "1", record.ABIV1}}, false, Counts{}, []uint64{1, 0},
		},
		"hash": {
			// printf 'user\0alice' | openssl dgst -sha256 -hmac salt | cut -c-32
			[]Rule{{Key: "user", Action: Hash}}, v1(kv("user", "alice")),
			[]Label{{"user", "251ec56e7137d064e8d42f9ddacd6c5d", record.ABIV1}}, false, Counts{}, []uint64{1},
		},
		"cap_value_bytes": {
			[]Rule{{Action: CapValueBytes, Limit: 5}}, v1(kv("a", long), kv("b", "12345")),
			[]Label{{"a", "éé", record.ABIV1}, {"b", "12345", record.ABIV1}}, true, Counts{AnomalyTruncatedValue: 1}, []uint64{2},
		},
		"nothing left": {
			[]Rule{{Action: Drop}}, v1(kv("a", "1"), kv("b", "2")), nil, false, Counts{}, []uint64{2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, ch := ruled(t, tc.rules...)
			for range 3 {
				d := ch.Decode(of(alice), names, tc.section)
				r.Count(d)
				require.Equal(t, tc.want, collected(d.Set))
				require.Equal(t, tc.truncated, d.Set.Truncated())
				require.Equal(t, tc.counts, d.Counts)
				ch.EndInterval(0)
			}
			for i, n := range tc.matches {
				require.Equal(t, 3*n, r.RuleMatches(i), "rule %d", i)
			}
		})
	}
}

// A rule can match as many labels as a thread context has names, and those of other sources.
func TestRuleOfManyLabels(t *testing.T) {
	all, attrs := make([]string, maxKeyNames), []byte(nil)
	for i := range all {
		all[i] = strconv.Itoa(i)
		attrs = append(attrs, attr(byte(i), "")...)
	}
	require.LessOrEqual(t, len(attrs), record.MaxContextAttrsBytes)
	r, ch := ruled(t, Rule{Action: Drop})
	d := ch.Decode(of(alice), NewKeyMap(all), join(contextRecord{valid: 1, attrs: attrs}.block(), v1(kv("a", "1"))))
	r.Count(d)
	require.Zero(t, d.Set.Len())
	require.EqualValues(t, maxKeyNames+1, r.RuleMatches(0))
}

// Values beyond the cap go, those that were there stay; keys, users and intervals have each their own.
func TestCapDistinctValues(t *testing.T) {
	r, ch := ruled(t, Rule{Key: "id.?", Action: CapDistinctValues, Limit: 2})
	decode := func(u User, key, value string) (string, bool) {
		d := ch.Decode(of(u), nil, v1(kv(key, value), kv("other", value)))
		r.Count(d)
		labels := collected(d.Set)
		require.Equal(t, len(labels) < 2, d.Set.Truncated())
		require.Equal(t, uint32(2-len(labels)), d.Counts[AnomalyCappedValue])
		return labels[0].Key, len(labels) == 2
	}
	for range 2 {
		for value, want := range map[string]bool{"1": true, "2": true} {
			_, ok := decode(alice, "id.a", value)
			require.Equal(t, want, ok)
		}
		key, ok := decode(alice, "id.a", "3")
		require.False(t, ok)
		require.Equal(t, "other", key)
		for _, ok := range []func() (string, bool){
			func() (string, bool) { return decode(alice, "id.a", "1") },
			func() (string, bool) { return decode(alice, "id.b", "3") },
			func() (string, bool) { return decode(bob, "id.a", "3") },
		} {
			_, kept := ok()
			require.True(t, kept)
		}
		ch.EndInterval(0)
	}
	require.EqualValues(t, 12, r.RuleMatches(0))
}

// Where the executable is not known, what is to be hidden is hidden.
func TestUnknownExecutable(t *testing.T) {
	for action, kept := range map[Action]bool{Drop: false, Hash: false, Keep: true, Rename: true} {
		rule := Rule{Key: "a", Executable: "/usr/bin/python3", Action: action}
		if action == Rename {
			rule.To = "b"
		}
		_, ch := ruled(t, rule)
		got := collected(ch.Decode(Origin{User: alice}, nil, v1(kv("a", "1"))).Set)
		require.Equal(t, kept, len(got) == 1 && got[0] == Label{"a", "1", record.ABIV1}, action)
		got = collected(ch.Decode(Origin{User: alice, Executable: "/usr/bin/perl"}, nil, v1(kv("a", "1"))).Set)
		require.Equal(t, []Label{{"a", "1", record.ABIV1}}, got, action)
	}
}

// Without a salt each registry has its own; with one they agree.
func TestHashSalt(t *testing.T) {
	hash := func(salt string) string {
		r := newTestRegistry(t, func(o *Options) { o.Rules, o.Salt = []Rule{{Action: Hash}}, []byte(salt) })
		return collected(r.NewChannel().Decode(of(alice), nil, v1(kv("a", "1"))).Set)[0].Value
	}
	require.Equal(t, hash("x"), hash("x"))
	require.NotEqual(t, hash("x"), hash("y"))
	require.NotEqual(t, hash(""), hash(""))
	require.Len(t, hash(""), 32)
}

// More executables than are remembered have their rules all the same, in bounded memory.
func TestManyExecutables(t *testing.T) {
	_, ch := ruled(t, Rule{Key: "a", Executable: "/secret/*", Action: Drop})
	for i := range 3 * maxViews {
		path := "/secret/" + strings.Repeat("x", i)
		require.Zero(t, ch.Decode(Origin{alice, path}, nil, v1(kv("a", "1"))).Set.Len())
		require.Equal(t, 1, ch.Decode(Origin{alice, "/open/" + path}, nil, v1(kv("a", "1"))).Set.Len())
	}
	require.Len(t, ch.accounts[alice].views, maxViews)
	require.LessOrEqual(t, len(ch.accounts[alice].results), maxViews+1)
}

// What is remembered by executable counts, as long as it is remembered, and has the room that reads have.
func TestRulesByExecutableCount(t *testing.T) {
	const pathBytes = 4000
	r, ch := ruled(t, Rule{Key: "a", Executable: "/secret/*", Action: Drop}, Rule{Key: "b", Executable: "/**", Action: Drop})
	at := func(i int) Origin {
		path := fmt.Sprintf("/secret/%d-", i)
		return Origin{alice, path + strings.Repeat("x", pathBytes-len(path))}
	}
	section := v1(kv("a", "1"))
	ch.Decode(Origin{alice, ""}, nil, section)
	before, reads := ch.Bytes(), ch.ReadBytes()
	for i := range maxViews - 1 {
		ch.Decode(at(i), nil, section)
	}
	require.Len(t, ch.accounts[alice].views, maxViews)
	require.GreaterOrEqual(t, ch.Bytes()-before, (maxViews-1)*pathBytes)
	require.GreaterOrEqual(t, ch.ReadBytes()-reads, (maxViews-1)*pathBytes)
	before = ch.Bytes()
	for i := range maxViews {
		ch.Decode(at(i), nil, section)
		ch.Decode(at(maxViews+i), nil, section)
	}
	require.Less(t, ch.Bytes()-before, pathBytes, "no more are remembered")

	ch.ForgetReads()
	require.Zero(t, ch.ReadBytes())
	require.Empty(t, ch.accounts[alice].views)
	ch.Decode(at(0), nil, section)
	require.GreaterOrEqual(t, ch.ReadBytes(), pathBytes)
	ch.EndInterval(0)
	require.Equal(t, ch.KeyBytes(), ch.Bytes())

	r.opts.Budgets.Bytes = 10 * pathBytes
	for i := range maxViews {
		require.Zero(t, ch.Decode(at(i), nil, section).Set.Len())
	}
	require.LessOrEqual(t, ch.Bytes()-ch.KeyBytes(), 12*pathBytes)
}
