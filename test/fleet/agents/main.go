package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const profilesMethod = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

type options struct {
	target   string
	backend  string
	requests string
	name     string
	agents   int
	rounds   int
	interval time.Duration
	inFlight int
}

func main() {
	var o options
	flag.StringVar(&o.target, "target", "", "address of the gateway, without TLS")
	flag.StringVar(&o.backend, "backend", "", "address where the gateway finds its backend, which is here, too")
	flag.StringVar(&o.requests, "requests", "", "file of requests, each after its length in four bytes")
	flag.StringVar(&o.name, "name", "agent-00000", "the name in them, which each agent replaces by its own of the same length")
	flag.IntVar(&o.agents, "agents", 1000, "how many")
	flag.IntVar(&o.rounds, "rounds", 1, "requests of each agent")
	flag.DurationVar(&o.interval, "interval", 5*time.Second, "from one request of an agent to its next; 0: none waits")
	flag.IntVar(&o.inFlight, "in-flight", 64, "requests at the same time, of all agents")
	flag.Parse()
	sent, err := o.run(context.Background())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(sent)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	}
}

// Sent is what went to the gateway and was acknowledged, and what arrived behind it.
type Sent struct {
	Requests int     `json:"requests"`
	Samples  int     `json:"samples"`
	Arrived  int64   `json:"arrived"` // samples
	Batches  int64   `json:"batches"` // requests behind the gateway
	Bytes    int64   `json:"bytes"`   // before compression
	Wire     int64   `json:"wire"`    // after it
	Again    int64   `json:"again"`   // requests that the gateway refused, and took later
	Seconds  float64 `json:"seconds"`
	Slowest  float64 `json:"slowest"` // seconds from a request to its acknowledgement
}

func (o *options) run(ctx context.Context) (*Sent, error) {
	file, err := os.ReadFile(o.requests)
	if err != nil {
		return nil, err
	}
	requests, err := split(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", o.requests, err)
	}
	f := &fleet{options: o, requests: requests, slots: make(chan struct{}, o.inFlight)}
	behind, err := startBackend(o.backend)
	if err != nil {
		return nil, err
	}
	defer behind.close()
	conns := make([]*grpc.ClientConn, o.agents)
	for i := range conns {
		conns[i], err = grpc.NewClient(o.target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(&f.wire),
			grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10), grpc.WithUserAgent("simulated agent"))
		if err != nil {
			return nil, err
		}
		defer conns[i].Close()
		conns[i].Connect()
	}
	// Whoever is first waits until the gateway has found its backend; that does not count.
	if err := f.send(ctx, conns[0], requests[0]); err != nil {
		return nil, err
	}
	f.sent = Sent{}
	f.wire.bytes.Store(0)
	behind.samples.Store(0)
	behind.requests.Store(0)
	start := time.Now()
	var running sync.WaitGroup
	errs := make(chan error, o.agents)
	for i, conn := range conns {
		running.Go(func() { errs <- f.agent(ctx, i, conn, start) })
	}
	running.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return nil, err
		}
	}
	f.sent.Seconds = time.Since(start).Seconds()
	f.sent.Wire = f.wire.bytes.Load()
	f.sent.Arrived, f.sent.Batches = behind.samples.Load(), behind.requests.Load()
	return &f.sent, nil
}

func split(file []byte) (requests [][]byte, err error) {
	for len(file) > 0 {
		if len(file) < 4 || len(file)-4 < int(binary.BigEndian.Uint32(file)) {
			return nil, errors.New("it ends within a request")
		}
		n := 4 + int(binary.BigEndian.Uint32(file))
		requests, file = append(requests, file[4:n]), file[n:]
	}
	if len(requests) == 0 {
		return nil, errors.New("no requests")
	}
	return requests, nil
}
