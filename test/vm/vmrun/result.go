//go:build linux

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

// parseResult decodes the guest's line; there has to be a status of each program.
func parseResult(line []byte, programs int) (*guest.Result, error) {
	var r guest.Result
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("decode the result: %w", err)
	}
	if r.Err == "" && len(r.Programs) != programs {
		return nil, fmt.Errorf("the status of %d programs, want %d", len(r.Programs), programs)
	}
	return &r, nil
}

func writeResult(path string, r *guest.Result) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// untar unpacks plain files into dir.
func untar(r io.Reader, dir string) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the name %q leaves the directory", h.Name)
		}
		path := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
}
