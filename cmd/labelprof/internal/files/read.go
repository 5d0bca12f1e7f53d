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
func registerMemory(flags *flag.FlagSet, usage string) *command.MemoryFlag {
	m := &command.MemoryFlag{}
	m.Register(flags, 1024, usage)
	return m
}

// valid says on stderr what is wrong with the files and the flag, and fails with command.ErrUsage.
func valid(name string, files []string, m *command.MemoryFlag, stderr io.Writer) error {
	if !m.Valid() {
		return command.UsageError(stderr, "labelprof %s: --max-memory must be from 1 to %d", name, command.MaxMemoryMiB)
	}
	if len(files) == 0 {
		return command.UsageError(stderr, "labelprof %s: no files given", name)
	}
	return nil
}

// readAll hands over what files have. It fails with that of the first that cannot be read.
func readAll(ctx context.Context, files []string, m *command.MemoryFlag, s *sink.Sink) error {
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
