//go:build linux && (amd64 || arm64)

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUnwindPattern: what the judgement of TestUnwind rests on.
func TestUnwindPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, stack string // root first
		want           verdict
	}{
		{"main;w_x;@AB", "_start start main w_x w_A w_B", verdictWhole},
		{"main;w_x;@AB", "_start start main w_x w_B w_A", verdictWrong},
		{"main;w_x;@AB", "_start start main w_x w_A w_B w_B", verdictWrong},
		{"main;w_x;@AB", "_start start main w_x w_A", verdictWrong},
		{"main;w_x;@AB", "_start w_x w_A w_B", verdictWrong},
		{"main;w_x;@AB", "_start main w_x w_A w_B memset", verdictWrong},
		{"main;w_x;@AB", "main w_x w_A w_B", verdictPartial},
		{"main;w_x;@AB", "w_B", verdictPartial},
		{"main;w_x;@AB", "start main w_x w_A w_B", verdictPartial},
		{"main;w_x;@AB", "start main w_x w_B", verdictWrong},
		{"main;w_x;@AB", "w_A", verdictWrong},
		{"main;w_x;@AB", "", verdictWrong},
		{"main;w_x;?2", "_start main w_x", verdictWhole},
		{"main;w_x;?2", "_start main w_x a b", verdictWhole},
		{"main;w_x;?2", "_start main w_x a b c", verdictWrong},
		{"main;w_x;?2", "_start main w_x a w_b", verdictWrong},
		{"main;w_x;?2", "b", verdictPartial},
		{"main;w_x;~2;w_c", "_start main w_x w_c", verdictWrong},
		{"main;w_x;~2;w_c", "_start main w_x a w_c", verdictWhole},
		{"main;w_x;~2;w_c", "a w_c", verdictPartial},
		{"main;%ABC;?1", "_start main", verdictWhole},
		{"main;%ABC;?1", "_start main w_A w_B a", verdictWhole},
		{"main;%ABC;?1", "_start main w_A w_C", verdictWrong},
		{"main;%ABC;?1", "_start main w_B", verdictWrong},
		{"main;%ABC;~2;w_h", "_start main w_A restore w_h", verdictWhole},
		{"main;%ABC;~2;w_h", "w_B restore w_h", verdictPartial},
		{"main;%ABC;~2;w_h", "w_A w_h", verdictWrong},
		{"main;+w_c;+w_d;w_e", "_start main w_c w_e", verdictWhole},
		{"main;+w_c;+w_d;w_e", "_start main w_d w_e", verdictWrong},
		{"main;w_x;?0", "_start main w_x", verdictWhole},
	} {
		p, err := parsePattern(c.pattern)
		require.NoError(t, err)
		var frames []frame
		for _, name := range strings.Fields(c.stack) {
			frames = append(frames, frame{function: name, mapping: "/x"})
		}
		slices.Reverse(frames)
		assert.Equal(t, c.want, p.match(frames, strings.HasPrefix(c.stack, "_start "), &stackRules{entries: []string{"_start"}}), "%s: %s", c.pattern, c.stack)
	}
	for name, want := range map[string]string{
		"w_J.cold":           "w_J",
		"w::w_catch(int)":    "w_catch",
		"w::w_catch":         "w_catch",
		"w::guard::~guard()": "~guard",
		"int w::w_down<int>(int, std::basic_string<char> const&)": "w_down",
		"main.(*receiver).w_D":      "w_D",
		"main.w_A":                  "w_A",
		"runtime.goexit.abi0":       "goexit",
		"void Deep.w_A(int)":        "w_A",
		"JS:*w_A /tmp/deep.js:1:2":  "w_A",
		"<deep::T as deep::U>::w_A": "w_A",
		"memset":                    "memset",
	} {
		assert.Equal(t, want, normalize(name), name)
	}
	_, err := parsePattern("a;;b")
	assert.Error(t, err)
	_, err = parsePattern("a;?b")
	assert.Error(t, err)
}
