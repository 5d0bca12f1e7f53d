// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What deploy/Dockerfile says; TestRelease compares them.
const (
	collectorPath    = "/otelcol-customlabels"
	labelprofPath    = "/labelprof"
	licensesPath     = "/LICENSES.txt"
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
	configArgument   = "--config=/etc/otelcol-customlabels/config.yaml"
	gateArgument     = "--feature-gates=service.profilesSupport"
)

// annotation is what the OCI image specification puts before the keys that it defines.
const annotation = "org.opencontainers.image."

// A release is what an image is made from.
type release struct {
	version, revision string
	created           time.Time
	platforms         []platform
}

// A platform is an architecture, by Go's name, which is OCI's too, the static programs for it,
// and their licenses.
type platform struct {
	arch  string
	files []file
}

// untyped is an image whose entry in an index has no artifactType, which the library would take
// from its config: older skopeos (1.9) drop the field when they push, so the digest would change.
type untyped struct{ v1.Image }

// ArtifactType is none.
func (untyped) ArtifactType() (string, error) { return "", nil }

// write writes the layout into a folder and returns the digest of the index of the images.
func (r *release) write(folder string) (digest string, err error) {
	authorities, err := certificates()
	if err != nil {
		return "", err
	}
	// The same layer for all architectures.
	trust, err := r.layer(file{certificatesPath, 0o644, authorities})
	if err != nil {
		return "", err
	}
	var images []mutate.IndexAddendum
	for _, p := range r.platforms {
		image, err := r.image(p, trust)
		if err != nil {
			return "", fmt.Errorf("make the image for %s: %w", p.arch, err)
		}
		images = append(images, mutate.IndexAddendum{
			Add:        untyped{image},
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.arch}},
		})
	}
	index, ok := mutate.Annotations(mutate.AppendManifests(empty.Index, images...), r.labels()).(v1.ImageIndex)
	if !ok {
		return "", fmt.Errorf("annotate the index: it is none anymore")
	}
	hash, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("make the index: %w", err)
	}
	// The layout's own index has one entry, the index of the images, which tools find without
	// being told a name.
	to, err := layout.Write(folder, empty.Index)
	if err != nil {
		return "", fmt.Errorf("write the layout: %w", err)
	}
	name := layout.WithAnnotations(map[string]string{annotation + "ref.name": r.version})
	if err := to.AppendIndex(index, name); err != nil {
		return "", fmt.Errorf("write the images: %w", err)
	}
	return hash.String(), nil
}

// image makes the image of one architecture, with a layer for each file and one that is given.
func (r *release) image(p platform, trust v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		Architecture: p.arch,
		OS:           "linux",
		Created:      v1.Time{Time: r.created},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{collectorPath},
			Cmd:        []string{configArgument, gateArgument},
			Labels:     r.labels(),
		},
	})
	if err != nil {
		return nil, err
	}
	addendum := func(layer v1.Layer, path string) mutate.Addendum {
		return mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "COPY " + path}}
	}
	layers := []mutate.Addendum{addendum(trust, certificatesPath)}
	for _, f := range p.files {
		layer, err := r.layer(f)
		if err != nil {
			return nil, err
		}
		layers = append(layers, addendum(layer, f.path))
	}
	return mutate.Append(image, layers...)
}

func (r *release) labels() map[string]string {
	return map[string]string{
		annotation + "title":    "otelcol-customlabels",
		annotation + "version":  r.version,
		annotation + "revision": r.revision,
		annotation + "created":  r.created.Format(time.RFC3339),
		annotation + "source":   "https://github.com/customlabels/otelcol-customlabels",
		annotation + "licenses": "Apache-2.0",
	}
}
