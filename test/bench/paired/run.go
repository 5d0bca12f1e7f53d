package paired

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// SeedEnv sets the seed of the order of measurements, to repeat one.
const SeedEnv = "CUSTOM_LABELS_SEED"

// A Run is one benchmark's: its order of measurements, and the file that keeps them.
type Run struct {
	t      testing.TB
	random *rand.Rand
	file   *os.File
}

// Start prints what is measured on, and with what seed, and begins the file
// NAME-TIME.jsonl in dir.
func Start(t testing.TB, dir, name string) *Run {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(SeedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", SeedEnv, err)
		}
	}
	m := thisMachine()
	path := filepath.Join(dir, fmt.Sprintf("%s-%s.jsonl", name, m.Date.Format("20060102-150405")))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{t: t, random: rand.New(rand.NewPCG(seed, 0)), file: f}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	r.keep(struct {
		Benchmark string `json:"benchmark"`
		Seed      uint64 `json:"seed"`
		machine
	}{name, seed, m})
	fmt.Printf("%s\n%s=%d; all rounds in %s\n", m, SeedEnv, seed, path)
	return r
}

// Rounds measures each subject once in each of n rounds. Their order is random in every
// other round and the reverse of that in the next, so that what follows on something is
// shared out evenly.
func (r *Run) Rounds(of string, n int, subjects []string, measure func(subject string) Figures) *Series {
	return r.rounds(of, n, subjects, func(order []string, done func(subject string, f Figures)) {
		for _, subject := range order {
			done(subject, measure(subject))
		}
	})
}

// Together is Rounds that measure all subjects at once: what disturbs one disturbs the
// others in the same seconds. What starts them does so in the order that it is given,
// because the later one may find what the earlier one has just read.
func (r *Run) Together(of string, n int, subjects []string, measure func(order []string) map[string]Figures) *Series {
	return r.rounds(of, n, subjects, func(order []string, done func(subject string, f Figures)) {
		figures := measure(order)
		for _, subject := range order {
			done(subject, figures[subject])
		}
	})
}

func (r *Run) rounds(of string, n int, subjects []string, measure func(order []string, done func(string, Figures))) *Series {
	s := &Series{}
	order := slices.Clone(subjects)
	for round := range n {
		if round%2 == 0 {
			r.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		} else {
			slices.Reverse(order)
		}
		figures := map[string]Figures{}
		load := loadAverage()
		measure(order, func(subject string, f Figures) {
			r.keep(map[string]any{
				"of": of, "round": round, "place": len(figures), "subject": subject, "load": load, "figures": f,
			})
			figures[subject] = f
			load = loadAverage()
		})
		s.rounds = append(s.rounds, figures)
	}
	return s
}

// Judge prints the claims with their verdicts, and then how many there are of each. A
// claim that is missed fails the test.
func (r *Run) Judge(claims ...Claim) {
	r.t.Helper()
	verdicts := map[Verdict]int{}
	for i := range claims {
		c := &claims[i]
		v := c.Verdict()
		verdicts[v]++
		r.keep(map[string]any{"claim": c.What, "unit": c.Unit, "goal": c.Goal, "verdict": v, "interval": Of(c.Values)})
		if v == Missed {
			r.t.Errorf("missed: %s", c.What)
		}
	}
	for i := range claims {
		fmt.Println(&claims[i])
	}
	for _, v := range slices.Sorted(maps.Keys(verdicts)) {
		fmt.Printf("%d of %d claims: %s\n", verdicts[v], len(claims), v)
	}
}

func (r *Run) keep(what any) {
	r.t.Helper()
	line, err := json.Marshal(what)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		r.t.Fatal(err)
	}
}
