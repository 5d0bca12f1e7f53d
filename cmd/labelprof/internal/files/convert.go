// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// Convert is `labelprof pprof`: it turns files into one pprof file. It fails with the errors
// of package command, or with that of the first file that cannot be read or written; and, when
// it is written, where a file is cut.
func Convert(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof pprof", flag.ContinueOnError)
	out := flags.String("o", "", "pprof `file` to write")
	m := registerMemory(flags)
	files, err := command.Parse(&command.Help{
		Name: "pprof", Synopsis: []string{"[flags] -o OUT.pb.gz FILE..."},
		About: `
Turns files of OTLP profiles into one file for "go tool pprof", with labels as tags, and
off-CPU time as a sample type of its own. Of a file that is cut, or still being written, all
requests before that are taken.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	if *out == "" {
		return command.UsageError(stderr, "labelprof pprof: -o is missing")
	}
	p := pprof.New(pprof.MaxBytes)
	s := sink.New(sink.Config{Pprof: p})
	if err := readAll(ctx, "pprof", files, m, s, stderr); err != nil {
		return err
	}
	for _, note := range s.Notes() {
		fmt.Fprintln(stderr, terminal.Escape(note))
	}
	if !p.Empty() {
		err = s.WritePprof(*out)
	}
	return errors.Join(err, ended(s, p.Empty()))
}
