package main

import (
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

const maxRequestBytes = 64 << 20

// A backend takes what gateways pass on, and counts it.
type backend struct {
	server            *grpc.Server
	requests, samples atomic.Int64
}

func startBackend(address string) (*backend, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	b := &backend{}
	b.server = grpc.NewServer(grpc.MaxRecvMsgSize(maxRequestBytes), grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(b.export))
	go func() { _ = b.server.Serve(listener) }() // until close
	return b, nil
}

func (b *backend) close() { b.server.Stop() }

func (b *backend) export(_ any, stream grpc.ServerStream) error {
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	b.requests.Add(1)
	b.samples.Add(int64(samplesOf(request)))
	return stream.SendMsg(&[]byte{})
}

// timestamps leads to those of all samples in a request, by the numbers of fields: resources,
// scopes, profiles, samples. Each is one sample that the agent took.
var timestamps = []protowire.Number{1, 2, 2, 2, 5} //nolint:gochecknoglobals // a constant

func samplesOf(request []byte) int { return walk(request, timestamps) / 8 }

// walk adds up the bytes at a path of fields.
func walk(message []byte, path []protowire.Number) (n int) {
	if len(path) == 0 {
		return len(message)
	}
	for len(message) > 0 {
		field, kind, head := protowire.ConsumeTag(message)
		if head < 0 {
			return n
		}
		size := protowire.ConsumeFieldValue(field, kind, message[head:])
		if size < 0 {
			return n
		}
		if field == path[0] && kind == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(message[head:])
			n += walk(inner, path[1:])
		}
		message = message[head+size:]
	}
	return n
}
