// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// errNoSamples keeps a script from taking an empty profile for a result.
var errNoSamples = errors.New("no samples")

// top prints the tables for files.
func top(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof top", flag.ContinueOnError)
	var v viewFlags
	v.register(flags)
	m := registerReadMemory(flags)
	files, err := parse(flags, args, stderr)
	if err != nil {
		return err
	}
	s := &sink{truthFiles: v.truth, table: newTable(v.by)}
	if err := m.readAll(ctx, files, s, stderr); err != nil {
		return err
	}
	s.show(stdout, v)
	if s.table.hits == 0 && s.table.absences == 0 {
		return errNoSamples
	}
	return nil
}

// convert turns files into one pprof file.
func convert(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("labelprof pprof", flag.ContinueOnError)
	out := flags.String("o", "", "pprof `file` to write")
	m := registerReadMemory(flags)
	files, err := parse(flags, args, stderr)
	if err != nil {
		return err
	}
	if *out == "" {
		return usageError(stderr, "labelprof pprof: -o is missing")
	}
	s := &sink{pprof: newPprofProfile(maxPprofBytes)}
	if err := m.readAll(ctx, files, s, stderr); err != nil {
		return err
	}
	for _, note := range s.notes() {
		fmt.Fprintln(stderr, escape(note))
	}
	if len(s.pprof.samples) == 0 {
		return errNoSamples
	}
	return s.finish(*out)
}

// registerReadMemory registers the flag of commands that only read files.
func registerReadMemory(flags *flag.FlagSet) *memoryFlag {
	m := &memoryFlag{}
	m.register(flags, 1024, "`MiB` that reading and decoding a file may take")
	return m
}

func (f *memoryFlag) readAll(ctx context.Context, files []string, s *sink, stderr io.Writer) error {
	if !f.valid() {
		return usageError(stderr, "--max-memory must be from 1 to %d", maxMemoryMiB)
	}
	collectBefore(int64(f.memory()))
	return readAll(ctx, files, newDecoder(f.memory()), s, stderr)
}

func readAll(ctx context.Context, files []string, d *decoder, s *sink, stderr io.Writer) error {
	if len(files) == 0 {
		return usageError(stderr, "no files given")
	}
	for _, file := range files {
		if err := readInto(ctx, file, d, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// readInto reads a file of OTLP profiles or of pprof.
func readInto(ctx context.Context, file string, d *decoder, s *sink) error {
	if isPprof, err := readPprof(file, d, s.consumePprof); isPprof || err != nil {
		return err
	}
	return readFile(file, d, func(profiles pprofile.Profiles) {
		if ctx.Err() == nil {
			s.consume(profiles)
		}
	})
}
