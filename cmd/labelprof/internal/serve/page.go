// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"time"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/web"
)

// Bounds of what browsers may do.
const (
	maxPageConnections = 32
	maxPageHeaderBytes = 64 << 10 // a URL has all filters in it
	pageReadTimeout    = 10 * time.Second
	pageWriteTimeout   = 2 * time.Minute // of a profile to a slow browser
	pageIdleTimeout    = time.Minute
	pageDrainTimeout   = 2 * time.Second
)

// page serves the page to browsers.
type page struct {
	listener *listener
	server   *http.Server
	served   chan error
}

// newPage listens at an address and serves in the background.
func newPage(address string, cfg web.Config) (*page, error) {
	handler, err := web.New(cfg)
	if err != nil {
		return nil, err
	}
	listener, err := listen(address, maxPageConnections)
	if err != nil {
		return nil, fmt.Errorf("listen for the page (--web chooses another address): %w", err)
	}
	p := &page{
		listener: listener,
		server: &http.Server{
			Handler: handler, ReadTimeout: pageReadTimeout, WriteTimeout: pageWriteTimeout, IdleTimeout: pageIdleTimeout,
			MaxHeaderBytes: maxPageHeaderBytes,
			ErrorLog:       stdlog.New(io.Discard, "", 0), // what a browser sends is not for the terminal
		},
		served: make(chan error, 1),
	}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// url is what to open in a browser on this host.
func (p *page) url() string { return "http://" + p.listener.Addr().String() + "/" }

// stop finishes the answers under way, and gives up those that take too long.
func (p *page) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), pageDrainTimeout)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		p.server.Close()
	}
	if err := <-p.served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
