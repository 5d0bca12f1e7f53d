// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// maxRequestBytes bounds one export request in a file. The first byte of its length
// is then less than firstField: see readFile.
const maxRequestBytes = 128 << 20

// firstField is the least first byte of a protobuf export request: the tag of field
// 1, resource_profiles.
const firstField = 0x0a

// frameHeadBytes is the length before each request in a file of many, big-endian.
const frameHeadBytes = 4

// readFile hands over every batch in a file of OTLP profiles. The kind of file shows
// in the first byte: that of JSON, of the length of a request, or of a request.
func readFile(path string, visit func(pprofile.Profiles)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	first, err := r.Peek(1)
	if errors.Is(err, io.EOF) {
		return nil // nothing was exported
	}
	if err != nil {
		return err
	}
	read := readSingle
	switch {
	case first[0] == '{':
		read = readLines
	case first[0] < firstField:
		read = readFrames
	}
	if err := read(r, visit); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func readSingle(r *bufio.Reader, visit func(pprofile.Profiles)) error {
	data, err := io.ReadAll(io.LimitReader(r, maxRequestBytes+1))
	if err != nil {
		return err
	}
	if len(data) > maxRequestBytes {
		return fmt.Errorf("a request of more than %d bytes", maxRequestBytes)
	}
	return decode(data, pprofileotlp.ExportRequest.UnmarshalProto, visit)
}

func readFrames(r *bufio.Reader, visit func(pprofile.Profiles)) error {
	for n := 1; ; n++ {
		var head [frameHeadBytes]byte
		if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxRequestBytes {
			return fmt.Errorf("request %d: %d bytes, more than %d", n, size, maxRequestBytes)
		}
		// The length may lie: memory grows with what is there.
		var data bytes.Buffer
		if _, err := io.CopyN(&data, r, int64(size)); err != nil {
			return fmt.Errorf("request %d: %w", n, io.ErrUnexpectedEOF)
		}
		if err := decode(data.Bytes(), pprofileotlp.ExportRequest.UnmarshalProto, visit); err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
	}
}

func readLines(r *bufio.Reader, visit func(pprofile.Profiles)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRequestBytes)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := decode(line, pprofileotlp.ExportRequest.UnmarshalJSON, visit); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

func decode(data []byte, unmarshal func(pprofileotlp.ExportRequest, []byte) error, visit func(pprofile.Profiles)) error {
	request := pprofileotlp.NewExportRequest()
	if err := unmarshal(request, data); err != nil {
		return err
	}
	visit(request.Profiles())
	return nil
}

// appendFrame writes a batch as one request of a file of many. It changes the batch.
func appendFrame(w io.Writer, profiles pprofile.Profiles) (int64, error) {
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiles).MarshalProto()
	if err != nil {
		return 0, err
	}
	if len(data) > maxRequestBytes {
		return 0, fmt.Errorf("a request of %d bytes, more than %d", len(data), maxRequestBytes)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, frameHeadBytes+len(data)), uint32(len(data)))
	n, err := w.Write(append(frame, data...))
	return int64(n), err
}
