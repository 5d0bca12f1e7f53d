// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// liveInterval is how often a terminal shows what there is.
const liveInterval = time.Second

// showUntil prints the tables again and again, as soon as there is something.
func showUntil(ctx context.Context, stdout io.Writer, s *sink.Sink, v command.ViewFlags, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if rows := terminal.Rows(stdout); rows > 0 || s.Received() {
				draw(stdout, s, v, rows)
			}
		}
	}
}

// draw prints the tables in one write, so that a terminal does not flicker, and on a
// terminal as much of them as it has rows.
func draw(stdout io.Writer, s *sink.Sink, v command.ViewFlags, rows int) {
	var b bytes.Buffer
	s.Show(&b, int(v.Rows), int(v.Functions))
	out := b.Bytes()
	if rows > 0 {
		out = append([]byte(terminal.Clear), terminal.FirstLines(out, rows-1)...)
	}
	_, _ = stdout.Write(out) // a reader that went away is no reason to lose the files
}
