//go:build !linux || !(amd64 || arm64)

package pipeline

import (
	"context"
	"fmt"
	"runtime"
)

// Pipeline is what runs between Start and Shutdown; here there is none.
type Pipeline struct{}

// Supported tells why there can be no pipeline on this system.
func Supported() error {
	return fmt.Errorf("needs Linux on amd64 or arm64, this is %s on %s", runtime.GOOS, runtime.GOARCH)
}

// New returns the error of Supported.
func New(Options) (*Pipeline, error) { return nil, Supported() }

// Start returns the error of Supported.
func (*Pipeline) Start(context.Context) error { return Supported() }

// Shutdown does nothing.
func (*Pipeline) Shutdown(context.Context) error { return nil }

// Snapshot is empty.
func (*Pipeline) Snapshot() Snapshot { return Snapshot{} }
