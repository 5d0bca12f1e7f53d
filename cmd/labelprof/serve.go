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
	"time"
)

const (
	liveInterval = time.Second
	clearScreen  = "\x1b[H\x1b[2J\x1b[3J"
	unknownRows  = 24 // of a terminal that does not say
)

// serve receives profiles until it is told to stop or the duration is over, then
// prints the tables for the last time and writes the files.
func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof serve", flag.ContinueOnError)
	var v viewFlags
	v.register(flags)
	listen := flags.String("listen", "127.0.0.1:4317", "`address` to receive OTLP/gRPC at")
	duration := flags.Duration("duration", 0, "stop after this time (0: at a signal)")
	interval := flags.Duration("interval", 10*time.Second, "print the tables so often when the output is no terminal")
	pprofFile := flags.String("pprof", "", "pprof `file` to write at the end")
	otlpFile := flags.String("out-otlp", "", "`file` to append the received requests to, for top and pprof")
	rest, err := parse(flags, args, stderr)
	if err != nil {
		return err
	}
	if len(rest) > 0 || *interval <= 0 || *duration < 0 {
		return usageError(stderr, "labelprof serve: no arguments; --interval above 0, --duration not below 0")
	}

	s := &sink{truthFiles: v.truth, table: newTable(v.by)}
	if *pprofFile != "" {
		s.pprof = newPprofProfile(maxPprofBytes)
	}
	if *otlpFile != "" {
		file, err := createOTLP(*otlpFile)
		if err != nil {
			return err
		}
		defer file.Close()
		s.otlp = file
	}
	server, err := newServer(*listen, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "receiving OTLP profiles at %s\n", server.addr())
	if *duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *duration)
		defer cancel()
	}
	if rowsOf(stdout) > 0 {
		*interval = liveInterval
	}
	showUntil(ctx, stdout, s, v, *interval)

	err = server.stop()
	if rowsOf(stdout) > 0 {
		_, _ = io.WriteString(stdout, clearScreen)
	}
	s.show(stdout, v) // in full
	if s.table.hits == 0 {
		return errors.Join(err, errNoSamples)
	}
	return errors.Join(err, s.finish(*pprofFile), s.writeErr)
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
