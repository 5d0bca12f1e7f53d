// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// firstField is the first byte of a protobuf export request: the tag of field 1,
// resource_profiles, or, in one that has none, of field 2, dictionary.
const (
	firstField  = 0x0a
	secondField = 0x12
)

// ErrKind says that a file is of something else.
var ErrKind = errors.New("it is neither a file of OTLP profiles, in protobuf or JSON, nor a gzipped pprof file")

func readSingle(r *bufio.Reader, d *Decoder, visit func(pprofile.Profiles)) error {
	data, err := readUpTo(r, d.memory.file())
	if err != nil {
		return err
	}
	err = d.Request(data, visit)
	if errors.Is(err, weight.ErrWire) {
		return fmt.Errorf("%w: %w", ErrKind, err)
	}
	return err
}

// readUpTo reads all there is, if it is not more.
func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("it has more than %s (--max-memory allows more)", weight.Mebibytes(limit))
	}
	return data, nil
}

func readFrames(ctx context.Context, r *bufio.Reader, d *Decoder, visit func(pprofile.Profiles)) error {
	limit := min(otlp.MaxFrameBytes, d.memory.file())
	for n := 1; ctx.Err() == nil; n++ {
		var head [otlp.FrameHeadBytes]byte
		if there, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return ended("request", n, int64(there), 0, err)
		}
		size := int64(binary.BigEndian.Uint32(head[:]))
		if n == 1 && size > otlp.MaxFrameBytes {
			return ErrKind
		}
		if size > limit {
			hint := ""
			if limit < otlp.MaxFrameBytes {
				hint = " (--max-memory allows more)"
			}
			return fmt.Errorf("request %d: %d bytes, more than %d%s", n, size, limit, hint)
		}
		// The length may lie: memory grows with what is there.
		var data bytes.Buffer
		if there, err := io.CopyN(&data, r, size); err != nil {
			return ended("request", n, there, size, err)
		}
		if err := d.Request(data.Bytes(), visit); err != nil {
			if n == 1 && errors.Is(err, weight.ErrWire) {
				err = fmt.Errorf("%w: %w", ErrKind, err)
			}
			return fmt.Errorf("request %d: %w", n, err)
		}
	}
	return nil
}

func readLines(ctx context.Context, r *bufio.Reader, d *Decoder, visit func(pprofile.Profiles)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, int(d.memory.file()))
	whole := false // the line has its end
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(data, atEOF)
		whole = n > 0 && data[n-1] == '\n'
		return n, line, err
	})
	for n := 1; ctx.Err() == nil && lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		err := d.line(line, visit)
		switch {
		case err == nil:
		case !whole && isCutJSON(line, err):
			return &cutError{"line", n, int64(len(line)), 0}
		default:
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("a line has more than %s (--max-memory allows more)", weight.Mebibytes(d.memory.file()))
	} else if err != nil {
		return err
	}
	return nil
}
