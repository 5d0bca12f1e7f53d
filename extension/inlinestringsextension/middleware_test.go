package inlinestringsextension

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// newMiddleware is the extension as a collector makes it.
func newMiddleware(t *testing.T) interface {
	extensionmiddleware.GRPCClient
	extensionmiddleware.HTTPClient
} {
	f := NewFactory()
	require.Equal(t, "inline_strings", f.Type().String())
	ext, err := f.Create(t.Context(), extensiontest.NewNopSettings(f.Type()), f.CreateDefaultConfig())
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, ext.Shutdown(context.Background())) })
	return ext.(*middleware)
}

// bytesCodec hands requests over as they came.
type bytesCodec struct{ encoding.CodecV2 }

func (c bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if to, ok := v.(*[]byte); ok {
		*to = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

func (c bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(data)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// exportOverGRPC sends profiles as an exporter with the middleware does, and returns the bytes
// that come.
func exportOverGRPC(t *testing.T, p pprofile.Profiles, options ...grpc.DialOption) ([]byte, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var came []byte
	server := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{encoding.GetCodecV2("proto")}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		header, _ := metadata.FromIncomingContext(stream.Context())
		if kind := header.Get("content-type"); !slices.Equal(kind, []string{"application/grpc"}) {
			return status.Errorf(codes.InvalidArgument, "content type %q", kind)
		}
		if err := stream.RecvMsg(&came); err != nil {
			return err
		}
		return stream.SendMsg([]byte{})
	}))
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient(listener.Addr().String(), append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = pprofileotlp.NewGRPCClient(conn).Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(p))
	return came, err
}

func TestGRPC(t *testing.T) {
	options, err := newMiddleware(t).GetGRPCClientOptions(t.Context())
	require.NoError(t, err)

	came, err := exportOverGRPC(t, testProfiles())
	require.NoError(t, err)
	require.NotZero(t, references(t, came), "what an exporter sends without the middleware; if it has none, the extension is needed no more")

	came, err = exportOverGRPC(t, testProfiles(), options...)
	require.NoError(t, err)
	requireInline(t, came)
}

// TestGRPCOtherSignals: what is no request of profiles passes.
func TestGRPCOtherSignals(t *testing.T) {
	sent := new(int)
	err := intercept(t.Context(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", sent, nil, nil,
		func(_ context.Context, _ string, request, _ any, _ *grpc.ClientConn, options ...grpc.CallOption) error {
			require.Same(t, sent, request)
			require.Empty(t, options)
			return status.Error(codes.Aborted, "as it is")
		})
	require.Equal(t, codes.Aborted, status.Code(err))
}

func TestCodecRefuses(t *testing.T) {
	codec := inlineCodec{bytesCodec{encoding.GetCodecV2("proto")}}
	_, err := codec.Marshal([]byte{0xff})
	require.ErrorContains(t, err, "inline_strings: ")
	_, err = codec.Marshal(1)
	require.Error(t, err, "what the codec below refuses")
}

// exportOverHTTP sends a body as an exporter with the middleware does, and returns what comes,
// without its compression.
func exportOverHTTP(t *testing.T, body []byte, header http.Header) ([]byte, error) {
	var came []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.EqualValues(t, len(data), r.ContentLength)
		require.Equal(t, header.Get("Content-Encoding"), r.Header.Get("Content-Encoding"))
		came, err = decompress(r.Header.Get("Content-Encoding"), data)
		require.NoError(t, err)
	}))
	defer server.Close()
	wrap, err := newMiddleware(t).GetHTTPRoundTripper(t.Context())
	require.NoError(t, err)
	transport, err := wrap(t.Context(), http.DefaultTransport)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header = header
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	return came, err
}

func header(compression string) http.Header {
	h := http.Header{"Content-Type": {"application/x-protobuf"}}
	h.Set(pprofileotlp.DevelopmentVersionHeader, pprofileotlp.DevelopmentVersion)
	if compression != "" {
		h.Set("Content-Encoding", compression)
	}
	return h
}

func TestHTTP(t *testing.T) {
	request := encodedProfiles(t, testProfiles())
	require.NotZero(t, references(t, request))
	for _, compression := range []string{"", "gzip", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			body, err := compress(compression, request)
			require.NoError(t, err)
			came, err := exportOverHTTP(t, body, header(compression))
			require.NoError(t, err)
			requireInline(t, came)
		})
	}
}

// TestHTTPOtherSignals: requests without the header of profiles pass.
func TestHTTPOtherSignals(t *testing.T) {
	came, err := exportOverHTTP(t, []byte{0xff}, http.Header{"Content-Type": {"application/x-protobuf"}})
	require.NoError(t, err)
	require.Equal(t, []byte{0xff}, came)
}

func TestHTTPRefuses(t *testing.T) {
	asJSON := header("")
	asJSON.Set("Content-Type", "application/json")
	for name, tt := range map[string]struct {
		body    []byte
		header  http.Header
		message string
	}{
		"JSON":                {[]byte("{}"), asJSON, "encoding proto"},
		"another compression": {[]byte{1}, header("snappy"), "gzip, zstd or none"},
		"no gzip":             {[]byte{1}, header("gzip"), "inline_strings: unexpected EOF"},
		"no zstd":             {[]byte{1}, header("zstd"), "inline_strings: "},
		"no message":          {[]byte{0xff}, header(""), "inline_strings: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := exportOverHTTP(t, tt.body, tt.header)
			require.ErrorContains(t, err, tt.message)
			require.True(t, consumererror.IsPermanent(err), "it would be the same again")
		})
	}
}
