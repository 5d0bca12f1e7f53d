// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// errOtherSignal says that JSON is of something else.
var errOtherSignal = errors.New(`it has no OTLP profiles ("resourceProfiles")`)

// errNoPprof says that a gzipped file is of something else.
var errNoPprof = errors.New("it is gzipped, but no pprof file")

// decoder decodes what fits into memory, one at a time.
type decoder struct {
	memory          memory
	requests, pprof *shape

	mu sync.Mutex // held while there is something decoded
}

func newDecoder(m memory) *decoder {
	return &decoder{memory: m, requests: requestShape(), pprof: pprofShape()}
}

// request hands over a request in protobuf.
func (d *decoder) request(data []byte, visit func(pprofile.Profiles)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := checkWeight(data, d.requests, d.memory.decoded()); err != nil {
		return err
	}
	request := pprofileotlp.NewExportRequest()
	if err := request.UnmarshalProto(data); err != nil {
		return errWire // the error names types of the wire, and nobody is helped
	}
	visit(request.Profiles())
	return nil
}

// line hands over a request in JSON.
func (d *decoder) line(data []byte, visit func(pprofile.Profiles)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := checkJSONWeight(data, d.memory.decoded()); err != nil {
		return err
	}
	request := pprofileotlp.NewExportRequest()
	if err := request.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("its JSON is not that of OTLP profiles: %w", err)
	}
	profiles := request.Profiles()
	if len(data) > len("{}") && profiles.ResourceProfiles().Len() == 0 && profiles.Dictionary().StringTable().Len() == 0 {
		return errOtherSignal
	}
	visit(profiles)
	return nil
}

// profile decodes a file of pprof.
func (d *decoder) profile(data []byte, visit func(*profile.Profile)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := checkWeight(data, d.pprof, d.memory.decoded()); errors.Is(err, errWire) {
		return fmt.Errorf("%w: %w", errNoPprof, err)
	} else if err != nil {
		return err
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNoPprof, err)
	}
	if len(pprofKinds(p)) == 0 {
		return errNoTime
	}
	visit(p)
	return nil
}

// appendFrame writes a batch as one request of a file of many. It changes the batch.
func appendFrame(w io.Writer, profiles pprofile.Profiles) (int64, error) {
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiles).MarshalProto()
	if err != nil {
		return 0, err
	}
	if len(data) > maxFrameBytes {
		return 0, fmt.Errorf("a request of %d bytes, more than %d", len(data), maxFrameBytes)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, frameHeadBytes+len(data)), uint32(len(data)))
	n, err := w.Write(append(frame, data...))
	return int64(n), err
}
