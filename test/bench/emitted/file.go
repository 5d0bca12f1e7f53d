package emitted

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// FileEnv names the variable that tells a collector in which file to write.
const FileEnv = "CUSTOM_LABELS_PROFILES"

// ReadFile returns all samples that a file has from an offset on, in the order of their
// batches, and where the next batch begins. A batch that is still being written is left
// out.
func ReadFile(path string, from int64) (samples []Sample, next int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, from, math.MaxInt64-from))
	if err != nil {
		return nil, 0, err
	}
	for len(text) >= 4 {
		n := int(binary.LittleEndian.Uint32(text))
		if n > len(text)-4 {
			break
		}
		p, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(text[4 : 4+n])
		if err != nil {
			return nil, 0, fmt.Errorf("read a batch of %s: %w", path, err)
		}
		from, text = from+int64(4+n), text[4+n:]
		samples = appendSamples(samples, p)
	}
	return samples, from, nil
}
