// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sink"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/table"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// liveInterval is how often a terminal shows what there is.
const liveInterval = time.Second

// live shows the tables.
type live struct {
	stdout io.Writer
	view   command.ViewFlags
	head   string // lines that a terminal keeps above the tables
}

// say prints a line that stays to be seen.
func (l *live) say(stderr io.Writer, line string) {
	l.head += line + "\n"
	fmt.Fprintln(stderr, line)
}

// until prints the tables again and again, as soon as there is something.
func (l *live) until(ctx context.Context, s *sink.Sink, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if screen := terminal.Of(l.stdout); screen.Redraws() || s.Received() {
				l.draw(s, screen)
			}
		}
	}
}

// tables are what the flags ask to be shown, in the width of a terminal.
func (l *live) tables(s *sink.Sink, screen terminal.Screen) []byte {
	var b bytes.Buffer
	if screen.Redraws() {
		b.WriteString(l.head)
	}
	s.Show(&b, table.View{Rows: int(l.view.Rows), Functions: int(l.view.Functions), Columns: screen.Columns})
	return b.Bytes()
}

// draw prints the tables in one write, so that a terminal does not flicker, and on a
// terminal as much of them as it has room for.
func (l *live) draw(s *sink.Sink, screen terminal.Screen) {
	out := l.tables(s, screen)
	if screen.Redraws() {
		out = append([]byte(terminal.Clear), screen.Fit(out)...)
	}
	_, _ = l.stdout.Write(out) // a reader that went away is no reason to lose the files
}

// last prints all rows of the tables.
func (l *live) last(s *sink.Sink) {
	screen := terminal.Of(l.stdout)
	if screen.Redraws() {
		_, _ = io.WriteString(l.stdout, terminal.Clear)
	}
	_, _ = l.stdout.Write(l.tables(s, screen))
}
