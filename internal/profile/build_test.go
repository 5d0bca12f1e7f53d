package profile

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// buildAll is what Requests makes of Builders, in one piece.
func buildAll(builders []*Builder, r Resolver, startUnixNano, endUnixNano uint64) (p pprofile.Profiles, stats BuildStats) {
	for p, stats = range Requests(builders, r, slices.Repeat([]uint64{startUnixNano}, len(builders)), endUnixNano, math.MaxInt, new(uint64), nil) {
		continue // there is no other
	}
	return p, stats
}

func buildOne(b *Builder, r Resolver, startUnixNano, endUnixNano uint64) (pprofile.Profiles, BuildStats) {
	return buildAll([]*Builder{b}, r, startUnixNano, endUnixNano)
}
