// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
)

// registerMemory registers the flag of commands that only read files.
func registerMemory(flags *flag.FlagSet) *command.MemoryFlag {
	m := &command.MemoryFlag{}
	m.Register(flags, 1024, "`MiB` that reading and decoding a file may take")
	return m
}

func readAll(ctx context.Context, name string, files []string, m *command.MemoryFlag, s *sink.Sink, stderr io.Writer) error {
	if !m.Valid() {
		return command.UsageError(stderr, "labelprof %s: --max-memory must be from 1 to %d", name, command.MaxMemoryMiB)
	}
	command.CollectBefore(int64(m.Memory()))
	if len(files) == 0 {
		return command.UsageError(stderr, "labelprof %s: no files given", name)
	}
	if err := input.NewDecoder(m.Memory()).ReadFiles(ctx, files, s); err != nil {
		return errors.Join(append(s.Cuts(), err)...)
	}
	return nil
}

// ended is the error of a command that has shown, or written, what files have: of those that are cut
// that is not all, and without a sample it is nothing.
func ended(s *sink.Sink, empty bool) error {
	err := errors.Join(s.Cuts()...)
	if empty {
		err = errors.Join(err, command.ErrNoSamples)
	}
	return err
}
