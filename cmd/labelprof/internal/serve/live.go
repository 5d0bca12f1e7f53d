// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
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
			if screen := terminal.Of(stdout); screen.Redraws() || s.Received() {
				draw(stdout, s, v, screen)
			}
		}
	}
}

// tableView is what the flags ask to be shown, in the width of a terminal.
func tableView(v command.ViewFlags, screen terminal.Screen) table.View {
	return table.View{Rows: int(v.Rows), Functions: int(v.Functions), Columns: screen.Columns}
}

// draw prints the tables in one write, so that a terminal does not flicker, and on a
// terminal as much of them as it has room for.
func draw(stdout io.Writer, s *sink.Sink, v command.ViewFlags, screen terminal.Screen) {
	var b bytes.Buffer
	s.Show(&b, tableView(v, screen))
	out := b.Bytes()
	if screen.Redraws() {
		out = append([]byte(terminal.Clear), screen.Fit(out)...)
	}
	_, _ = stdout.Write(out) // a reader that went away is no reason to lose the files
}
