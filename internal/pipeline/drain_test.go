//go:build linux && (amd64 || arm64)

package pipeline

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
)

// script is a reader that does one step after the other.
type script []func() (uint64, error)

func (s *script) take(*aggregator) (uint64, error) {
	step := (*s)[0]
	*s = (*s)[1:]
	return step()
}

func (*script) end(*stream) {}

// Until when samples have been read is known of all streams together.
func TestSamplesRead(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	other := &stream{}
	p := &Pipeline{streams: []*stream{d.stream, other}}
	began, looked := int64(monotonicNow()), int64(0)
	other.readNs.Store(1 << 62)
	(&drain{*d, &script{
		func() (uint64, error) { return 0, &bpf.FormatError{} },
		func() (uint64, error) {
			require.Zero(t, p.samplesRead())
			return 4711, nil
		},
		func() (uint64, error) {
			require.EqualValues(t, 4711, p.samplesRead())
			return 0, bpf.ErrIdle
		},
		func() (uint64, error) {
			require.EqualValues(t, 4711, p.samplesRead(), "what came after the look was not read")
			looked = int64(monotonicNow())
			return 0, bpf.ErrIdle
		},
		func() (uint64, error) {
			require.GreaterOrEqual(t, p.samplesRead(), began)
			require.LessOrEqual(t, p.samplesRead(), looked)
			looked += 1e12
			return uint64(looked), nil
		},
		func() (uint64, error) { return 0, bpf.ErrIdle },
		func() (uint64, error) {
			require.Equal(t, looked, p.samplesRead(), "a sample was taken later than the last look")
			other.readNs.Store(42)
			require.EqualValues(t, 42, p.samplesRead())
			return 0, bpf.ErrDrained
		},
	}, func(err error) { t.Error(err) }}).run()
}

// The end of a source that nobody has ended is told.
func TestBrokenSource(t *testing.T) {
	for end, told := range map[error]bool{bpf.ErrDrained: false, bpf.ErrClosed: false, fmt.Errorf("read record: %w", syscall.EBADF): true} {
		d, _ := testAggregator(t, func(*Options) {}, nil)
		var got error
		(&drain{*d, &script{func() (uint64, error) { return 0, end }}, func(err error) { got = err }}).run()
		if told {
			require.Equal(t, end, got)
		} else {
			require.NoError(t, got)
		}
	}
}
