// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Consumer takes in what files have.
type Consumer interface {
	// Consume takes in a batch of OTLP and owns it.
	Consume(pprofile.Profiles)
	// ConsumePprof takes in a profile of pprof and owns it.
	ConsumePprof(*profile.Profile)
	// Cut is told that a file ends within a request: which one, and what of it is left out. All
	// before was handed over.
	Cut(error)
}

// ReadFiles hands over all that files have, one after the other, until the context ends. It
// fails at the first file that cannot be read, with ErrKind if it is of something else, or with
// why the context has ended. A file that ends within a request is no failure.
func (d *Decoder) ReadFiles(ctx context.Context, files []string, to Consumer) error {
	for _, file := range files {
		if ctx.Err() != nil {
			break
		}
		err := d.readInto(ctx, file, to)
		var cut *cutError
		switch {
		case errors.As(err, &cut):
			to.Cut(err)
		case err != nil:
			return err
		}
	}
	return context.Cause(ctx)
}

// readInto reads a file of OTLP profiles, until the context ends, or of pprof. The kind of file
// shows in the first bytes: those of gzip, of JSON, of the length of a request, or of a request.
// It is opened once, because it may be a pipe, which has its bytes once.
func (d *Decoder) readInto(ctx context.Context, path string, to Consumer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	first, err := r.Peek(len(gzipMagic))
	switch {
	case len(first) > 0:
	case errors.Is(err, io.EOF):
		return nil // nothing was exported
	default:
		return err
	}
	visit := func(profiles pprofile.Profiles) {
		if ctx.Err() == nil {
			to.Consume(profiles)
		}
	}
	switch {
	case string(first) == gzipMagic:
		err = readPprof(r, d, to.ConsumePprof)
	case first[0] == '{':
		err = readLines(ctx, r, d, visit)
	case first[0] < firstField:
		err = readFrames(ctx, r, d, visit)
	case first[0] == firstField || first[0] == secondField:
		err = readSingle(r, d, visit)
	default:
		err = ErrKind
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
