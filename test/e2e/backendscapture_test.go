//go:build linux && (amd64 || arm64)

package e2e

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// A capture keeps the bytes of the requests that come over gRPC and HTTP, and takes them all.
type capture struct {
	grpc, http string // addresses

	mu  sync.Mutex
	all map[string][][]byte // "grpc", "http", or the folder above the path of HTTP
}

// rawCodec hands over messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

func startCapture(t *testing.T) *capture {
	t.Helper()
	c := &capture{all: map[string][][]byte{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequestBytes), grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(c.export))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	web := httptest.NewServer(http.HandlerFunc(c.post))
	t.Cleanup(func() {
		web.Close()
		server.Stop()
		require.NoError(t, <-served)
	})
	c.grpc, c.http = listener.Addr().String(), strings.TrimPrefix(web.URL, "http://")
	return c
}

func (c *capture) keep(kind string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[kind] = append(c.all[kind], data)
}

// requests returns those of a kind, in order.
func (c *capture) requests(kind string) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all[kind])
}

// counts are the requests of each kind, those that were refused included.
func (c *capture) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for kind, all := range c.all {
		counts[kind] = len(all)
	}
	return counts
}

func (c *capture) export(_ any, stream grpc.ServerStream) error {
	const method = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
	if name, _ := grpc.MethodFromServerStream(stream); name != method {
		return fmt.Errorf("%s is not %s", name, method)
	}
	var data []byte
	if err := stream.RecvMsg(&data); err != nil {
		return err
	}
	c.keep("grpc", data)
	return stream.SendMsg(&[]byte{})
}

func (c *capture) post(w http.ResponseWriter, r *http.Request) {
	data, err := readBody(r)
	above, ok := strings.CutSuffix(r.URL.Path, "/v1development/profiles")
	kind := r.Header.Get("Content-Type")
	if err != nil || !ok || r.Method != http.MethodPost || kind != "application/x-protobuf" {
		c.keep(fmt.Sprintf("refused: %s %s %s %v", r.Method, r.URL, kind, err), data)
		http.Error(w, fmt.Sprint(r.Method, r.URL, kind, err), http.StatusBadRequest)
		return
	}
	c.keep(cmp.Or(strings.TrimPrefix(above, "/"), "http"), data)
	w.Header().Set("Content-Type", kind)
}

// readBody reads a body, which may be compressed with gzip.
func readBody(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(plain)
}

// resolvedWire puts the texts of a request's resources where its references point to, which
// is what earlier pdata wrote.
func resolvedWire(t *testing.T, data []byte) []byte {
	t.Helper()
	request, err := parseWire(data)
	require.NoError(t, err)
	texts := (&wireReader{}).messages(request, 2)[0][5]
	return rewritten(t, data, []protowire.Number{1, 1, 1}, func(kv wireMessage) []byte {
		out := protowire.AppendTag(nil, 1, protowire.BytesType)
		out = protowire.AppendBytes(out, texts[kv.number(3)].bytes)
		value := kv[2][0].bytes
		if v, _ := parseWire(value); len(v[valueStrindex]) > 0 {
			value = protowire.AppendBytes(protowire.AppendTag(nil, valueString, protowire.BytesType), texts[v.number(valueStrindex)].bytes)
		}
		return protowire.AppendBytes(protowire.AppendTag(out, 2, protowire.BytesType), value)
	})
}

// rewritten replaces the messages at a path of field numbers.
func rewritten(t *testing.T, data []byte, path []protowire.Number, replace func(wireMessage) []byte) (out []byte) {
	t.Helper()
	for len(data) > 0 {
		field, _, n := protowire.ConsumeField(data)
		require.Positive(t, n)
		whole := data[:n]
		data = data[n:]
		if field != path[0] {
			out = append(out, whole...)
			continue
		}
		_, _, head := protowire.ConsumeTag(whole)
		inner, _ := protowire.ConsumeBytes(whole[head:])
		if len(path) == 1 {
			m, err := parseWire(inner)
			require.NoError(t, err)
			inner = replace(m)
		} else {
			inner = rewritten(t, inner, path[1:], replace)
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), inner)
	}
	return out
}
