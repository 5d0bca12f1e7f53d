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
	shown  int64  // batches in the tables that were printed last
	failed error  // why the tables that are printed, or the files written, are not all
}

// say prints a line that stays to be seen.
func (l *live) say(stderr io.Writer, line string) {
	l.head += line + "\n"
	fmt.Fprintln(stderr, line)
}

// until prints the tables again and again, on a terminal always, elsewhere when something came.
func (l *live) until(ctx context.Context, s *sink.Sink, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			batches := s.Batches()
			if screen := terminal.Of(l.stdout); screen.Redraws() || batches > l.shown {
				l.draw(s, screen)
			}
			l.shown = batches
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
	l.print(out)
}

// print keeps the first error of the output for the end: it is no reason to lose the files.
func (l *live) print(out []byte) {
	if err := command.Print(l.stdout, out); err != nil && l.failed == nil {
		l.failed = fmt.Errorf("print the tables: %w", err)
	}
}

// last prints all rows of the tables.
func (l *live) last(s *sink.Sink) {
	screen := terminal.Of(l.stdout)
	if screen.Redraws() {
		_, _ = io.WriteString(l.stdout, terminal.Clear)
	}
	l.print(l.tables(s, screen))
}
