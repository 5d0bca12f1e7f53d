// SPDX-License-Identifier: Apache-2.0

package input

import (
	"context"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Consumer takes in what files have.
type Consumer interface {
	// Consume takes in a batch of OTLP and owns it.
	Consume(pprofile.Profiles)
	// ConsumePprof takes in a profile of pprof and owns it.
	ConsumePprof(*profile.Profile)
}

// ReadFiles hands over all that files have, one after the other, until the context ends. It
// fails at the first file that cannot be read, with ErrKind if it is of something else, or with
// why the context has ended.
func (d *Decoder) ReadFiles(ctx context.Context, files []string, to Consumer) error {
	for _, file := range files {
		if ctx.Err() != nil {
			break
		}
		if err := d.readInto(ctx, file, to); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// readInto reads a file of OTLP profiles or of pprof.
func (d *Decoder) readInto(ctx context.Context, file string, to Consumer) error {
	if isPprof, err := readPprof(file, d, to.ConsumePprof); isPprof || err != nil {
		return err
	}
	return readFile(ctx, file, d, func(profiles pprofile.Profiles) {
		if ctx.Err() == nil {
			to.Consume(profiles)
		}
	})
}
