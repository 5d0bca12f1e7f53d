//go:build linux && (amd64 || arm64)

package pipeline

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// newRegistry returns what knows the users' labels as long as the pipeline runs.
func newRegistry(o *LabelOptions, log *zap.Logger) (*labels.Registry, error) {
	r, err := labels.NewRegistry(labels.Options{
		Promotion:  o.Promotion,
		Rules:      o.Rules,
		Salt:       o.HashSalt,
		Refuse:     o.RefuseConflicts,
		Budgets:    o.Budgets,
		OnConflict: func(c labels.Conflict) { logConflict(log, &c) },
	})
	if err != nil {
		return nil, fmt.Errorf("make registry of labels: %w", err)
	}
	noteSalt(o, log)
	return r, nil
}

// minSaltBytes of random text are too many to be tried out.
const minSaltBytes = 16

// noteSalt says what values are worth less for that rules hash.
func noteSalt(o *LabelOptions, log *zap.Logger) {
	hashes := slices.ContainsFunc(o.Rules, func(r labels.Rule) bool { return r.Action == labels.Hash })
	switch n := len(o.HashSalt); {
	case !hashes:
	case n == 0:
		log.Info("labels::hash_salt is not set, or empty: what rules hash is another value after each start and on each host.")
	case n < minSaltBytes:
		log.Warn("labels::hash_salt is short: who tries out salts can find it, and then the values that rules hash.",
			zap.Int("bytes", n), zap.Int("recommended_bytes", minSaltBytes))
	}
}

// logConflict is called once for each key, and labels.MaxConflicts times for a user.
func logConflict(log *zap.Logger, c *labels.Conflict) {
	what := "The values of a label are not of one type: they are text from now on."
	if c.Refused {
		what = "The values of a label are not of one type: those of another type than the first are left out."
	}
	if c.Last {
		what += " Further ones of this user are only counted."
	}
	log.Warn(what,
		zap.Uint32("uid", c.UID), zap.Bool("shared_user", c.Others), zap.String("container", c.Container),
		zap.String("key", c.Key), zap.Stringer("source", c.Source),
		zap.String("before", c.Before), zap.String("now", c.Now), zap.String("executable", c.Executable))
}
