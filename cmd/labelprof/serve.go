// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

const (
	liveInterval = time.Second
	clearScreen  = "\x1b[H\x1b[2J\x1b[3J"
	unknownRows  = 24 // of a terminal that does not say
)

// serveFlags are the flags of serve.
type serveFlags struct {
	viewFlags
	pageFlags
	memoryFlag
	listen              string
	duration, interval  time.Duration
	pprofFile, otlpFile string
	files               []string // to show instead of what is received
}

func parseServe(args []string, stderr io.Writer) (*serveFlags, error) {
	flags := flag.NewFlagSet("labelprof serve", flag.ContinueOnError)
	f := &serveFlags{}
	f.viewFlags.register(flags)
	f.pageFlags.register(flags)
	f.memoryFlag.register(flags, 256, "`MiB` of samples that the page keeps, older ones leave first; and as many for what is received and decoded")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:4317", "`address` to receive OTLP/gRPC at")
	flags.DurationVar(&f.duration, "duration", 0, "stop after this time (0: at a signal)")
	flags.DurationVar(&f.interval, "interval", 10*time.Second, "print the tables so often when the output is no terminal")
	flags.StringVar(&f.pprofFile, "pprof", "", "pprof `file` to write at the end")
	flags.StringVar(&f.otlpFile, "out-otlp", "", "`file` to append the received requests to, for top and pprof")
	var err error
	if f.files, err = parse(flags, args, stderr); err != nil {
		return nil, err
	}
	if f.interval <= 0 || f.duration < 0 || !f.memoryFlag.valid() {
		return nil, usageError(stderr, "labelprof serve: --interval above 0, --duration not below 0, --max-memory from 1 to %d", maxMemoryMiB)
	}
	return f, nil
}

// serve receives profiles, or reads files, until it is told to stop or the duration is
// over, then prints the tables for the last time and writes the files.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseServe(args, stderr)
	if err != nil {
		return err
	}
	collectBefore(2 * int64(f.memory()))
	s := &sink{truthFiles: f.truth, table: newTable(f.by)}
	if f.pprofFile != "" {
		s.pprof = newPprofProfile(maxPprofBytes)
	}
	if f.pageFlags.listen != "" {
		s.store = samplestore.New(int64(f.memory()))
	}
	if f.otlpFile != "" {
		file, err := createOTLP(f.otlpFile)
		if err != nil {
			return err
		}
		defer file.Close()
		s.otlp = file
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	if rowsOf(stdout) > 0 {
		f.interval = liveInterval
	}
	if err := serveUntil(ctx, f, s, stdout, stderr); err != nil {
		return err
	}
	if rowsOf(stdout) > 0 {
		_, _ = io.WriteString(stdout, clearScreen)
	}
	s.show(stdout, f.viewFlags) // in full
	if s.table.hits == 0 && s.table.absences == 0 {
		return errNoSamples
	}
	return errors.Join(s.finish(f.pprofFile), s.writeErr)
}

// serveUntil fills the sink and shows it until the context ends.
func serveUntil(ctx context.Context, f *serveFlags, s *sink, stdout, stderr io.Writer) (err error) {
	source := "files " + strings.Join(f.files, ", ")
	if len(f.files) > 0 {
		if err := readAll(ctx, f.files, newDecoder(f.memory()), s, stderr); err != nil {
			return err
		}
	} else {
		server, err := newServer(f.listen, s, newDecoder(f.memory()), defaultPatience())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.stop()) }()
		source = fmt.Sprintf("OTLP profiles at %s", server.addr())
		fmt.Fprintf(stderr, "receiving %s\n", source)
	}
	if s.store != nil {
		page, err := newPage(&f.pageFlags, f.by, s, source, len(f.files) == 0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, page.stop()) }()
		fmt.Fprintf(stderr, "flame graphs by label: %s\n", page.url())
	}
	showUntil(ctx, stdout, s, f.viewFlags, f.interval)
	return nil
}

// showUntil prints the tables again and again, as soon as there is something.
func showUntil(ctx context.Context, stdout io.Writer, s *sink, v viewFlags, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if rows := rowsOf(stdout); rows > 0 || s.received() {
				draw(stdout, s, v, rows)
			}
		}
	}
}

func (s *sink) received() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches > 0
}

// draw prints the tables in one write, so that a terminal does not flicker, and on a
// terminal as much of them as it has rows.
func draw(stdout io.Writer, s *sink, v viewFlags, rows int) {
	var b bytes.Buffer
	s.show(&b, v)
	out := b.Bytes()
	if rows > 0 {
		out = append([]byte(clearScreen), firstLines(out, rows-1)...)
	}
	_, _ = stdout.Write(out) // a reader that went away is no reason to lose the files
}

// firstLines returns the first n lines, at least one.
func firstLines(text []byte, n int) []byte {
	end := 0
	for i := 0; i < max(n, 1); i++ {
		next := bytes.IndexByte(text[end:], '\n')
		if next < 0 {
			return text
		}
		end += next + 1
	}
	return text[:end]
}

// rowsOf is the height of a terminal; 0: the output is none.
func rowsOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	return terminalRows(file)
}
