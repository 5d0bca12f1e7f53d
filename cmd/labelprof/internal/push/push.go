// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/input"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// Run is `labelprof push`: it sends what files have to Pyroscope. It fails with the errors of
// package command, with that of the first file that cannot be read, or with that of the first
// request that was not taken; requests before it have been, and it says how many. Of a file that is
// cut it sends what is before, and fails then.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	f, err := parseFlags(args, stdout, stderr)
	if err != nil {
		return err
	}
	c, err := newClient(f, secretOfEnvironment())
	if err != nil {
		return err
	}
	command.CollectBefore(int64(f.memory.Memory()))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := newGatherer(f, func(p *part) error { return c.send(ctx, p) }, cancel)
	err = input.NewDecoder(f.memory.Memory()).ReadFiles(ctx, f.files, g)
	if g.err == nil && err == nil {
		g.flush()
	}
	for _, note := range g.notes() {
		fmt.Fprintln(stderr, terminal.Escape(note))
	}
	if g.err != nil {
		err = g.err
	}
	if err != nil {
		if g.sent.profiles > 0 {
			fmt.Fprintf(stderr, "sent before that: %s\n", g.sent)
		}
		return errors.Join(g.ended, err)
	}
	if g.sent.profiles == 0 {
		return errors.Join(g.ended, command.ErrNoSamples)
	}
	fmt.Fprintf(stdout, "sent to %s: %s\n", terminal.Escape(c.shown), g.sent)
	return g.ended
}
