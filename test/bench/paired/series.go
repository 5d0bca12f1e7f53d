package paired

// Figures are what one measurement gives, by name.
type Figures map[string]float64

// A Series is rounds of measurements of the same subjects.
type Series struct {
	rounds []map[string]Figures // by subject
}

// Values returns a figure of a subject, round by round.
func (s *Series) Values(subject, figure string) []float64 {
	return s.each(func(round map[string]Figures) float64 { return round[subject][figure] })
}

// Ratios returns a figure of one subject by that of another, round by round.
func (s *Series) Ratios(of, to, figure string) []float64 {
	return s.each(func(round map[string]Figures) float64 { return round[of][figure] / round[to][figure] })
}

// Differences returns by how much a figure of one subject exceeds that of another, round
// by round.
func (s *Series) Differences(of, from, figure string) []float64 {
	return s.each(func(round map[string]Figures) float64 { return round[of][figure] - round[from][figure] })
}

func (s *Series) each(value func(round map[string]Figures) float64) (values []float64) {
	for _, round := range s.rounds {
		values = append(values, value(round))
	}
	return values
}
