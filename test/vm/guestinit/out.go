//go:build linux

package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/customlabels/otelcol-customlabels/test/vm/internal/guest"
)

// writeOut writes the files that the programs left in guest.OutDir as a tar.
func writeOut(w io.Writer) error {
	tw := tar.NewWriter(w)
	err := filepath.WalkDir(guest.OutDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(guest.OutDir, path)
		if err != nil {
			return err
		}
		if err := tw.WriteHeader(&tar.Header{Name: name, Size: int64(len(b)), Mode: 0o644}); err != nil {
			return err
		}
		_, err = tw.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	return tw.Close()
}
