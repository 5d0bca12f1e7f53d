package main

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/encoding"
)

// compression is what agents use, by the name that it has in gRPC.
const compression = "zstd"

func init() {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	encoding.RegisterCompressor(&compressor{encoder})
}

// A compressor compresses messages as a whole: all agents share its encoders, of which there
// are as many as CPUs.
type compressor struct{ encoder *zstd.Encoder }

func (*compressor) Name() string { return compression }

func (c *compressor) Compress(w io.Writer) (io.WriteCloser, error) {
	return &message{out: w, encoder: c.encoder}, nil
}

func (*compressor) Decompress(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) }

type message struct {
	bytes.Buffer
	out     io.Writer
	encoder *zstd.Encoder
}

func (m *message) Close() error {
	_, err := m.out.Write(m.encoder.EncodeAll(m.Bytes(), nil))
	return err
}
