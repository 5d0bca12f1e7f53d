package inlinestringsextension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// exportMethod is what exporters call over gRPC (opentelemetry-proto,
// collector/profiles/v1development).
const exportMethod = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

// middleware edits requests of profiles of the exporters that name it. Requests of other signals
// pass.
type middleware struct {
	component.StartFunc
	component.ShutdownFunc
}

var (
	_ extensionmiddleware.GRPCClient = (*middleware)(nil)
	_ extensionmiddleware.HTTPClient = (*middleware)(nil)
)

// GetGRPCClientOptions implements [extensionmiddleware.GRPCClient].
func (*middleware) GetGRPCClientOptions(context.Context) ([]grpc.DialOption, error) {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}, nil
}

// intercept has requests of profiles encoded with strings in place. One that cannot be fails for
// good: gRPC gives it the code Internal, which exporters do not try again.
func intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if method != exportMethod {
		return invoke(ctx, method, request, reply, conn, options...)
	}
	codec := inlineCodec{encoding.GetCodecV2("proto")}
	return invoke(ctx, method, request, reply, conn, append(options, grpc.ForceCodecV2(codec))...)
}

// inlineCodec is the codec of exporters, with strings in place.
type inlineCodec struct{ encoding.CodecV2 }

// Name implements [encoding.CodecV2]: none, so that the content type stays application/grpc.
func (inlineCodec) Name() string { return "" }

// Marshal implements [encoding.CodecV2].
func (c inlineCodec) Marshal(request any) (mem.BufferSlice, error) {
	encoded, err := c.CodecV2.Marshal(request)
	if err != nil {
		return nil, err
	}
	defer encoded.Free()
	plain := encoded.MaterializeToBuffer(mem.DefaultBufferPool())
	defer plain.Free()
	inline, err := inlineStrings(plain.ReadOnlyData())
	if err != nil {
		return nil, fmt.Errorf("inline_strings: %w", err)
	}
	return mem.BufferSlice{mem.SliceBuffer(inline)}, nil
}

// GetHTTPRoundTripper implements [extensionmiddleware.HTTPClient].
func (*middleware) GetHTTPRoundTripper(context.Context) (extensionmiddleware.WrapHTTPRoundTripperFunc, error) {
	return func(_ context.Context, next http.RoundTripper) (http.RoundTripper, error) {
		return roundTripper{next}, nil
	}, nil
}

// roundTripper edits requests of profiles: those with the header that exporters give to them.
type roundTripper struct{ next http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get(pprofileotlp.DevelopmentVersionHeader) == "" || request.Body == nil {
		return r.next.RoundTrip(request)
	}
	body, err := inlineBody(request)
	if err != nil {
		return nil, consumererror.NewPermanent(fmt.Errorf("inline_strings: %w", err))
	}
	edited := request.Clone(request.Context())
	edited.ContentLength = int64(len(body))
	edited.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	edited.Body, _ = edited.GetBody()
	return r.next.RoundTrip(edited)
}

// inlineBody reads and closes the body of a request, which the exporter has compressed already,
// and returns the one to send, compressed likewise.
func inlineBody(request *http.Request) ([]byte, error) {
	encoded, err := io.ReadAll(request.Body)
	if err := errors.Join(err, request.Body.Close()); err != nil {
		return nil, err
	}
	if kind := request.Header.Get("Content-Type"); kind != "application/x-protobuf" {
		return nil, fmt.Errorf("body of type %q: the exporter must have encoding proto", kind)
	}
	compression := request.Header.Get("Content-Encoding")
	plain, err := decompress(compression, encoded)
	if err != nil {
		return nil, err
	}
	inline, err := inlineStrings(plain)
	if err != nil {
		return nil, err
	}
	return compress(compression, inline)
}

// zstdWindow bounds what an encoder remembers: requests are some MiB at most.
const zstdWindow = 1 << 20

func decompress(compression string, data []byte) ([]byte, error) {
	switch compression {
	case "":
		return data, nil
	case "gzip":
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	case "zstd":
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.DecodeAll(data, nil)
	}
	return nil, fmt.Errorf("compression %s: the exporter must have gzip, zstd or none", compression)
}

func compress(compression string, data []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch compression {
	case "":
		return data, nil
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow)); err != nil {
			return nil, err
		}
	}
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
