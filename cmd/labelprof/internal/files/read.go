// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
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
	return input.NewDecoder(m.Memory()).ReadFiles(ctx, files, s)
}
