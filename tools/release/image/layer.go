// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// A file of an image, by its path from the root.
type file struct {
	path    string
	mode    int64
	content []byte
}

// layer makes a layer of a file and the folders that it is in. All are root's and of the
// release's time.
func (r *release) layer(f file) (v1.Layer, error) {
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(zip)
	name := strings.TrimPrefix(f.path, "/")
	for i, c := range name {
		if c == '/' {
			err = errors.Join(err, archive.WriteHeader(r.header(tar.TypeDir, name[:i+1], 0o755, 0)))
		}
	}
	err = errors.Join(err, archive.WriteHeader(r.header(tar.TypeReg, name, f.mode, len(f.content))))
	if err == nil {
		_, err = archive.Write(f.content)
	}
	if err := errors.Join(err, archive.Close(), zip.Close()); err != nil {
		return nil, fmt.Errorf("pack %s: %w", f.path, err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// header has nothing that differs between builds: USTAR has no room for it.
func (r *release) header(kind byte, name string, mode int64, size int) *tar.Header {
	return &tar.Header{
		Typeflag: kind, Name: name, Mode: mode, Size: int64(size), ModTime: r.created, Format: tar.FormatUSTAR,
	}
}

// certificates returns Mozilla's certificate authorities for TLS as PEM. Those that Mozilla
// trusts only for certificates from before some date are left out: a file cannot say that.
func certificates() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
