// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command go is an HTTP server which labels what it does: with runtime/pprof, whose labels
// profilers read from the goroutine that a thread runs, and which goroutines pass on to those
// that they start.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"time"

	"github.com/customlabels/otelcol-customlabels/examples/publish/go/processcontext"
)

// labelled sets tenant and route for each request.
func labelled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get("X-Tenant")
		if tenant == "" {
			tenant = "unknown"
		}
		pprof.Do(r.Context(), pprof.Labels("tenant", tenant, "route", r.URL.Path), func(ctx context.Context) {
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	})
}

// work is what a request does.
func work() {
	for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
	}
}

func run() error {
	port := "8080"
	if len(os.Args) > 1 {
		port = os.Args[1]
	}
	if err := processcontext.Publish(map[string]string{"service.name": "shop"}); err != nil {
		log.Printf("no process context: %v", err) // labels are there without
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: labelled(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			work()
			fmt.Fprintln(w, "done")
		})),
	}
	return server.Serve(listener)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
