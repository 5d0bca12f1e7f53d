// Package fileexporter writes profiles to a file, for tests that look at what another
// receiver emits: each batch as OTLP protobuf behind its length, 4 bytes, little endian.
package fileexporter

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// fileEnv names the file.
const fileEnv = "CUSTOM_LABELS_PROFILES"

// NewFactory returns the factory of the exporter, which has no configuration.
func NewFactory() exporter.Factory {
	return xexporter.NewFactory(
		component.MustNewType("profiles_file"),
		func() component.Config { return &struct{}{} },
		xexporter.WithProfiles(create, component.StabilityLevelDevelopment),
	)
}

func create(context.Context, exporter.Settings, component.Config) (xexporter.Profiles, error) {
	path := os.Getenv(fileEnv)
	if path == "" {
		return nil, errors.New(fileEnv + " names no file")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &file{f: f}, nil
}

type file struct {
	component.StartFunc
	mu sync.Mutex
	f  *os.File
}

func (*file) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (e *file) Shutdown(context.Context) error { return e.f.Close() }

func (e *file) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	text, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, err = e.f.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}
