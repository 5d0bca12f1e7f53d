// SPDX-License-Identifier: Apache-2.0

// Command release-image writes the image of a release, of several architectures, as an OCI
// image layout in a folder, from a folder with both programs of each and their licenses, and
// prints the digest of the image's index, by which a registry will know it. The same arguments
// and files give the same bytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: SOURCE_DATE_EPOCH=SECONDS release-image VERSION REVISION FOLDER ARCH=FILES...")
		os.Exit(2)
	}
	digest, err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "release-image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func run(version, revision, folder string, platforms []string) (digest string, err error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return "", fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
	}
	r := release{version: version, revision: revision, created: time.Unix(seconds, 0).UTC()}
	for _, arg := range platforms {
		arch, from, ok := strings.Cut(arg, "=")
		if !ok {
			return "", fmt.Errorf("%q is not ARCH=FILES", arg)
		}
		p := platform{arch: arch}
		for _, f := range []file{{path: collectorPath, mode: 0o755}, {path: labelprofPath, mode: 0o755}, {path: licensesPath, mode: 0o644}} {
			f.content, err = os.ReadFile(filepath.Join(from, f.path)) //nolint:gosec // it is for whoever calls to say which
			if err != nil {
				return "", err
			}
			p.files = append(p.files, f)
		}
		r.platforms = append(r.platforms, p)
	}
	return r.write(folder)
}
