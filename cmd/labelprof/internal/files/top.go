// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"flag"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
)

// Top is `labelprof top`: it prints the tables for files. It fails with the errors of
// package command, or with that of the first file that cannot be read.
func Top(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof top", flag.ContinueOnError)
	var v command.ViewFlags
	v.Register(flags)
	m := registerMemory(flags)
	files, err := command.Parse(flags, args, stderr)
	if err != nil {
		return err
	}
	t := table.New(v.By)
	s := sink.New(sink.Config{Table: t, TruthFiles: v.Truth})
	if err := readAll(ctx, files, m, s, stderr); err != nil {
		return err
	}
	s.Show(stdout, int(v.Rows), int(v.Functions))
	if t.Empty() {
		return command.ErrNoSamples
	}
	return nil
}
