// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"flag"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// Top is `labelprof top`: it prints the tables for files. It fails with the errors of
// package command, with that of the first file that cannot be read, or with that of stdout,
// unless its reader went away; and, when all is printed, where a file is cut.
func Top(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof top", flag.ContinueOnError)
	var v command.ViewFlags
	v.Register(flags)
	m := registerMemory(flags, "`MiB` that reading and decoding a file may take")
	asJSON := flags.Bool("json", false, "print JSON: docs/labelprof.md says what is in it")
	files, err := command.Parse(&command.Help{
		Name: "top", Synopsis: []string{"[flags] FILE..."},
		About: `
Prints CPU time by the values of labels, and the hottest functions of each, of files of OTLP
profiles or pprof. On a terminal names are cut to its width (COLUMNS overrides that), elsewhere
they are whole. There are no colours. Of a file that is cut, or still being written, all
requests before that are shown.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	if err := valid("top", files, m, stderr); err != nil {
		return err
	}
	command.CollectBefore(int64(m.Memory()))
	t := table.New(v.By)
	s := sink.New(sink.Config{Table: t, TruthFiles: v.Truth})
	if err := readAll(ctx, files, m, s); err != nil {
		return err
	}
	show := table.View{Rows: int(v.Rows), Functions: int(v.Functions), Columns: terminal.Of(stdout).Columns}
	var b bytes.Buffer
	if *asJSON {
		err = s.ShowJSON(&b, show)
	} else {
		s.Show(&b, show)
	}
	if err != nil {
		return err
	}
	if err := command.Print(stdout, b.Bytes()); err != nil {
		return err
	}
	return ended(s, t.Empty())
}
