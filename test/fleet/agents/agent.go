package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

const (
	requestTimeout = 30 * time.Second
	againAfter     = 200 * time.Millisecond
)

// A fleet is all agents.
type fleet struct {
	*options
	requests [][]byte
	slots    chan struct{} // one for each request on its way
	wire     wire

	mu   sync.Mutex
	sent Sent
}

// agent sends the requests of one. Agents begin at different times of the interval, and at
// different requests.
func (f *fleet) agent(ctx context.Context, number int, conn *grpc.ClientConn, start time.Time) error {
	name := fmt.Appendf(nil, "%s%05d", f.name[:len(f.name)-5], number)
	for round := range f.rounds {
		due := start.Add(f.interval*time.Duration(round) + f.interval*time.Duration(number)/time.Duration(f.agents))
		time.Sleep(time.Until(due))
		f.slots <- struct{}{}
		which := (number + round) % len(f.requests)
		err := f.send(ctx, conn, bytes.ReplaceAll(f.requests[which], []byte(f.name), name))
		<-f.slots
		if err != nil {
			return fmt.Errorf("agent %d: %w", number, err)
		}
	}
	return nil
}

// send sends one until it is taken.
func (f *fleet) send(ctx context.Context, conn *grpc.ClientConn, request []byte) error {
	start := time.Now()
	for {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		var answer []byte
		err := conn.Invoke(attempt, profilesMethod, &request, &answer, grpc.ForceCodec(raw{}), grpc.UseCompressor(compression))
		cancel()
		f.mu.Lock()
		if err == nil {
			f.sent.Requests++
			f.sent.Samples += samplesOf(request)
			f.sent.Bytes += int64(len(request))
			f.sent.Slowest = max(f.sent.Slowest, time.Since(start).Seconds())
		} else {
			f.sent.Again++
		}
		f.mu.Unlock()
		if err == nil {
			return nil
		}
		if status.Code(err) != codes.Unavailable {
			return err
		}
		time.Sleep(againAfter)
	}
}

// raw hands over messages as they are.
type raw struct{}

func (raw) Name() string { return "raw" }

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = bytes.Clone(data)
	return nil
}

// wire counts the bytes of requests as they are sent, with the frame of gRPC.
type wire struct{ bytes atomic.Int64 }

func (*wire) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (*wire) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*wire) HandleConn(context.Context, stats.ConnStats) {}

func (w *wire) HandleRPC(_ context.Context, s stats.RPCStats) {
	if out, ok := s.(*stats.OutPayload); ok {
		w.bytes.Add(int64(out.WireLength))
	}
}
