// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/binary"
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// FrameHeadBytes is the length before each request in a file of many, big-endian.
const FrameHeadBytes = 4

// MaxFrameBytes bounds one request in a file of many. The first byte of its length is then
// less than that of a request, by which files are told apart.
const MaxFrameBytes = 128 << 20

// AppendFrame writes a batch as one request of a file of many, in one write, and returns the
// bytes written. It changes the batch. It fails when the request has more than MaxFrameBytes,
// or with the writer's error.
func AppendFrame(w io.Writer, profiles pprofile.Profiles) (int64, error) {
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiles).MarshalProto()
	if err != nil {
		return 0, err
	}
	if len(data) > MaxFrameBytes {
		return 0, fmt.Errorf("a request of %d bytes, more than %d", len(data), MaxFrameBytes)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, FrameHeadBytes+len(data)), uint32(len(data)))
	n, err := w.Write(append(frame, data...))
	return int64(n), err
}
