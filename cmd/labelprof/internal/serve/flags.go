// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"flag"
	"io"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
)

// settings are the flags of serve.
type settings struct {
	view                command.ViewFlags
	page                pageFlags
	memory              command.MemoryFlag
	listen              string
	duration, interval  time.Duration
	pprofFile, otlpFile string
	files               []string // to show instead of what is received
}

func parseFlags(args []string, stdout, stderr io.Writer) (*settings, error) {
	flags := flag.NewFlagSet("labelprof serve", flag.ContinueOnError)
	f := &settings{}
	f.view.Register(flags)
	f.page.register(flags)
	f.memory.Register(flags, 256, "`MiB` of samples that the page keeps, older ones leave first; as many for what is received and decoded, and for the file of --pprof")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:4317", "`address` to receive OTLP/gRPC at, the endpoint of the collector's exporter; not together with files to show")
	flags.DurationVar(&f.duration, "duration", 0, "stop after this time (0: at a signal)")
	flags.DurationVar(&f.interval, "interval", 10*time.Second, "print the tables so often when the output is no terminal, if anything came since")
	flags.StringVar(&f.pprofFile, "pprof", "", "pprof `file` to write at the end")
	flags.StringVar(&f.otlpFile, "out-otlp", "", "`file` to write the received requests to, for top and pprof, not together with files to show; what was in it is replaced, and what comes when it has 1 GiB is left out and counted")
	var err error
	f.files, err = command.Parse(&command.Help{
		Name: "serve", Synopsis: []string{"[flags]", "[flags] FILE..."},
		About: `
Receives OTLP profiles by gRPC until a signal, or reads files of OTLP profiles or pprof, and shows
CPU time by the values of labels: in the terminal, and as flame graphs on a page. On a terminal
tables are drawn again and again, as much as fits; elsewhere they follow each other, names are
whole. There are no colours. Of a file that is cut, or still being written, all requests before
that are shown.`,
	}, flags, args, stdout, stderr)
	if err != nil {
		return nil, err
	}
	switch {
	case f.interval <= 0 || f.duration < 0 || !f.memory.Valid():
		return nil, command.UsageError(stderr, "labelprof serve: --interval above 0, --duration not below 0, --max-memory from 1 to %d", command.MaxMemoryMiB)
	case given(flags, "listen") && len(f.files) > 0:
		return nil, command.UsageError(stderr, "labelprof serve: --listen is where profiles are received, and with files nothing is")
	case f.listen == "":
		return nil, command.UsageError(stderr, "labelprof serve: --listen is an address such as 127.0.0.1:4317; an empty one would be any port, for all networks")
	case f.otlpFile != "" && len(f.files) > 0:
		return nil, command.UsageError(stderr, "labelprof serve: --out-otlp keeps what is received, and with files nothing is")
	}
	return f, errors.Join(command.NoDash(stderr, "serve", "--pprof", f.pprofFile), command.NoDash(stderr, "serve", "--out-otlp", f.otlpFile))
}

// given reports whether a flag is on the command line.
func given(flags *flag.FlagSet, name string) (there bool) {
	flags.Visit(func(f *flag.Flag) { there = there || f.Name == name })
	return there
}

// pageFlags are the flags of the page.
type pageFlags struct {
	listen string
	hosts  command.List
}

func (p *pageFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&p.listen, "web", "127.0.0.1:7317", "`address` of the page with flame graphs; \"\": no page")
	flags.Var(&p.hosts, "web-host", "`names` of this host under which the page may be opened, besides addresses and localhost")
}
