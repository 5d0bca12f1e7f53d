// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pagestore"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/web"
	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// Run is `labelprof serve`: it receives profiles, or reads files, until the context ends or the
// duration is over, then prints the tables for the last time and writes the files. It fails
// with the errors of package command, where it cannot listen, read or write, or, at the end, where
// a file is cut, was not read to its end, or the tables could not be printed.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if err != nil {
		return err
	}
	memory := int64(f.memory.Memory())
	collect := 2 * memory
	keep := sink.Config{Table: table.New(f.view.By), TruthFiles: f.view.Truth}
	if f.pprofFile != "" {
		if err := pprof.CheckFile(f.pprofFile); err != nil {
			return err
		}
		keep.Pprof = pprof.New(int(memory))
		collect += memory
	}
	command.CollectBefore(collect)
	if f.page.listen != "" {
		keep.Store = samplestore.New(memory)
	}
	begin := func() error { return nil }
	if f.otlpFile != "" {
		file, err := sink.CreateOTLP(f.otlpFile)
		if err != nil {
			return err
		}
		defer file.Close() // where finish does not
		keep.OTLP, begin = file, file.Begin
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.duration, errors.New("--duration is over"))
		defer cancel()
	}
	if terminal.Of(stdout).Redraws() {
		f.interval = liveInterval
	}
	s, show := sink.New(keep), &live{stdout: stdout, view: f.view}
	if err := fill(ctx, f, s, keep.Store, begin, show, stderr); err != nil {
		return errors.Join(append(s.Cuts(), err)...)
	}
	show.last(s)
	return errors.Join(finish(f, s, keep.Table.Empty(), stderr), show.failed)
}

// finish writes the files and says what is not in them. Of a pprof file this is an error: nobody
// asked for a part.
func finish(f *settings, s *sink.Sink, empty bool, stderr io.Writer) error {
	if note := s.OTLPNote(); note != "" {
		fmt.Fprintf(stderr, "labelprof serve: %s\n", note)
	}
	err := errors.Join(s.Cuts()...)
	if empty {
		return errors.Join(err, command.ErrNoSamples)
	}
	return errors.Join(err, s.WritePprof(f.pprofFile), s.CloseOTLP(), s.PprofLacks())
}

// fill fills the sink and shows it until the context ends. The page is there before files are
// read, and follows. begin is called when all addresses are there and before anything is received:
// a command that cannot start leaves what another has written.
func fill(ctx context.Context, f *settings, s *sink.Sink, store *samplestore.Store, begin func() error, show *live, stderr io.Writer) (err error) {
	// A batch that takes long does not keep the command from ending.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, s.GiveUp) })()
	var reading atomic.Bool
	source := "files " + strings.Join(f.files, ", ")
	reading.Store(len(f.files) > 0)
	var receive *server
	if len(f.files) == 0 {
		receive, err = newServer(f.listen, s.Consume, input.NewDecoder(f.memory.Memory()), defaultPatience())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, receive.stop()) }()
		source = fmt.Sprintf("OTLP profiles at %s", receive.addr())
		show.say(stderr, "receiving "+source)
	}
	if store != nil {
		page, err := newPage(f.page.listen, web.Config{
			Store: store, By: f.view.By, Hosts: f.page.hosts,
			State: func() (string, bool) {
				if reading.Load() {
					return source + " (reading)", true
				}
				return source, len(f.files) == 0
			},
			WriteProfile: func(w io.Writer, q *samplestore.Query) error { return pagestore.WriteProfile(w, store, q) },
			Notes:        s.StoreNotes,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, page.stop()) }()
		show.say(stderr, "flame graphs by label: "+page.url())
	}
	if err := begin(); err != nil {
		return err
	}
	if receive != nil {
		receive.serve()
	}
	if len(f.files) > 0 {
		err := read(ctx, f, s)
		switch ended := context.Cause(ctx); {
		case err == nil:
		case ended != nil && errors.Is(err, ended):
			show.failed = fmt.Errorf("the files were not read to their end: %w", ended)
		default:
			return err
		}
		for _, cut := range s.Cuts() {
			show.say(stderr, terminal.Escape(cut.Error()))
		}
		reading.Store(false)
	}
	show.until(ctx, s, f.interval)
	return nil
}

// read reads the files until the context ends. One that says nothing for long, as a pipe may, is
// left behind then; what is being taken in is finished first.
func read(ctx context.Context, f *settings, s *sink.Sink) error {
	read := make(chan error, 1)
	go func() { read <- input.NewDecoder(f.memory.Memory()).ReadFiles(ctx, f.files, s) }()
	select {
	case err := <-read:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-read:
		return err
	case <-time.After(readTimeout):
		s.End()
		return context.Cause(ctx)
	}
}
