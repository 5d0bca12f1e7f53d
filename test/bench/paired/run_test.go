package paired

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func ratios(low, high float64, n int) (values []float64) {
	for i := range n {
		values = append(values, low+(high-low)*float64(i)/float64(n-1))
	}
	return values
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   Verdict
	}{
		{"all below", ratios(0.1, 0.4, 10), Met},
		{"the interval ends at the goal", append(ratios(0.1, 0.5, 9), 3), Met},
		{"one below is an outlier", append(ratios(0.51, 0.9, 9), 0.1), Missed},
		{"all above", ratios(0.51, 0.52, 6), Missed},
		{"the median is below, the interval is not", ratios(0.3, 0.6, 10), Undecided},
		{"it begins at the goal", ratios(0.5, 0.9, 6), Undecided},
		{"too few", ratios(5, 6, 5), None},
	} {
		claim := Claim{What: c.name, Values: c.values, Goal: 0.5}
		assert.Equal(t, c.want, claim.Verdict(), claim.String())
	}
	claim := Claim{What: "BPF time a sample", Values: ratios(1, 10, 10), Goal: 2, Unit: "ms"}
	assert.Equal(t, "BPF time a sample                                 5.5 ms (97.9% interval 2 to 9, n = 10); goal 2 ms: not decided", claim.String())
}

// failed counts what it is told of.
type failed struct {
	testing.TB
	errors []string
}

func (f *failed) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func TestJudgeFailsWhatIsMissed(t *testing.T) {
	f := &failed{TB: t}
	r := Start(f, t.TempDir(), "judge")
	r.Judge(Claim{What: "good", Values: ratios(0.1, 0.2, 10), Goal: 0.5}, Claim{What: "unclear", Values: ratios(0.1, 2, 10), Goal: 0.5},
		Claim{What: "quick", Values: ratios(2, 3, 2), Goal: 0.5})
	require.Empty(t, f.errors)
	r.Judge(Claim{What: "good", Values: ratios(0.1, 0.2, 10), Goal: 0.5}, Claim{What: "bad", Values: ratios(1, 2, 10), Goal: 0.5})
	require.Equal(t, []string{"missed: bad"}, f.errors)
}

// measured runs rounds whose figures tell when they were taken, one after the other or
// together.
func measured(t *testing.T, dir string, together bool) (order []string, s *Series) {
	r := Start(t, dir, "order")
	n := 0.0
	measure := func(subject string) Figures {
		order = append(order, subject)
		n++
		return Figures{"n": n}
	}
	subjects := []string{"ours", "peer"}
	if !together {
		s = r.Rounds("test", 20, subjects, measure)
		return order, s
	}
	s = r.Together("test", 20, subjects, func(round []string) map[string]Figures {
		figures := map[string]Figures{}
		for _, subject := range round {
			figures[subject] = measure(subject)
		}
		return figures
	})
	return order, s
}

func TestRounds(t *testing.T)   { testRounds(t, false) }
func TestTogether(t *testing.T) { testRounds(t, true) }

func testRounds(t *testing.T, together bool) {
	t.Setenv(SeedEnv, "7")
	dir := t.TempDir()
	order, s := measured(t, dir, together)
	first := 0
	differ := false
	for i := 0; i < len(order); i += 2 {
		require.NotEqual(t, order[i], order[i+1], "both are in each round")
		if order[i] == "ours" {
			first++
		}
		differ = differ || i >= 4 && order[i] != order[i-4]
	}
	require.Equal(t, 10, first, "each is the first in half of the rounds")
	require.True(t, differ, "the order is the same in all rounds")
	again, _ := measured(t, t.TempDir(), together)
	require.Equal(t, order, again, "a seed repeats an order")

	for i, difference := range s.Differences("peer", "ours", "n") {
		want := 1.0 // the second one of its round has the higher number
		if order[2*i] == "peer" {
			want = -1
		}
		require.InDelta(t, want, difference, 0)
		ours, peer := s.Values("ours", "n")[i], s.Values("peer", "n")[i]
		require.InDelta(t, ours/peer, s.Ratios("ours", "peer", "n")[i], 1e-9)
	}
	checkFile(t, dir, order)
}

// checkFile reads what is kept: what it was measured on, and each measurement in order.
func checkFile(t *testing.T, dir string, order []string) {
	files, err := filepath.Glob(filepath.Join(dir, "order-*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	f, err := os.Open(files[0])
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	require.True(t, lines.Scan())
	var head map[string]any
	require.NoError(t, json.Unmarshal(lines.Bytes(), &head))
	for _, key := range []string{"benchmark", "seed", "date", "commit", "kernel", "arch", "processor", "cpus", "load"} {
		require.NotEmpty(t, head[key], key)
	}
	for i, subject := range order {
		require.True(t, lines.Scan())
		var kept struct {
			Of, Subject, Load string
			Round, Place      int
			Figures           Figures
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &kept))
		require.Equal(t, "test", kept.Of)
		require.Equal(t, subject, kept.Subject)
		require.Equal(t, i/2, kept.Round)
		require.Equal(t, i%2, kept.Place)
		require.InDelta(t, float64(i+1), kept.Figures["n"], 0)
	}
	require.False(t, lines.Scan())
}
