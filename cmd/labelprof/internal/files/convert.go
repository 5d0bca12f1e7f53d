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
// it is written, where a file is cut or samples
// had no room.
func Convert(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof pprof", flag.ContinueOnError)
	out := flags.String("o", "", "pprof `file` to write")
	m := registerMemory(flags, "`MiB` that reading and decoding a file may take, and as many for the pprof file while it is made")
	files, err := command.Parse(&command.Help{
		Name: "pprof", Synopsis: []string{"[flags] -o OUT.pb.gz FILE..."},
		About: `
Turns files of OTLP profiles into one file for "go tool pprof", with labels as tags, and
off-CPU time as a sample type of its own. Of a file that is cut, or still being written, all
requests before that are taken. Samples beyond --max-memory are left out and counted.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	if *out == "" {
		return command.UsageError(stderr, "labelprof pprof: -o is missing")
	}
	if err := command.NoDash(stderr, "pprof", "-o", *out); err != nil {
		return err
	}
	if err := valid("pprof", files, m, stderr); err != nil {
		return err
	}
	if err := pprof.CheckFile(*out); err != nil {
		return err
	}
	command.CollectBefore(2 * int64(m.Memory()))
	p := pprof.New(int(m.Memory()))
	s := sink.New(sink.Config{Pprof: p})
	if err := readAll(ctx, files, m, s); err != nil {
		return err
	}
	for _, note := range s.Notes() {
		fmt.Fprintln(stderr, terminal.Escape(note))
	}
	if !p.Empty() {
		err = s.WritePprof(*out)
	}
	if err = errors.Join(err, ended(s, p.Empty())); err == nil && p.Full() != "" {
		err = command.ErrReported // by a note
	}
	return err
}
