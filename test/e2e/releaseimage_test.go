//go:build linux && (amd64 || arm64)

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	releaseEpoch    = 1_700_000_000
	releaseRevision = "0123456789abcdef0123456789abcdef01234567"
)

// OCI's words for what an image consists of.
const (
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociConfig   = "application/vnd.oci.image.config.v1+json"
	ociLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// imageFiles are all that an image has.
var imageFiles = map[string]os.FileMode{
	"etc":                                 fs.ModeDir | 0o755,
	"etc/ssl":                             fs.ModeDir | 0o755,
	"etc/ssl/certs":                       fs.ModeDir | 0o755,
	"etc/ssl/certs/ca-certificates.crt":   0o644,
	strings.TrimPrefix(imageProgram, "/"): 0o755,
	"labelprof":                           0o755,
	"LICENSES.txt":                        0o644,
}

const imageProgram = "/otelcol-customlabels"

// An ociDescriptor says where something is, by the digest of its bytes.
type ociDescriptor struct {
	MediaType, Digest string
	ArtifactType      string
	Size              int64
	Platform          struct{ OS, Architecture, Variant string }
	Annotations       map[string]string
}

// An ociLayout is an image layout in an archive: its files, and which of its blobs were read.
type ociLayout struct {
	files map[string][]byte
	used  map[string]bool
}

// checkImage: the image of a release is one index of two images, each with the certificates and
// the static programs of its architecture, of which the collector starts where there is nothing else.
func checkImage(t *testing.T, release string, machines map[string]elf.Machine) {
	t.Helper()
	prefix := filepath.Join(release, "otelcol-customlabels-"+releaseVersion)
	layout := readLayout(t, prefix+"-oci.tar")
	require.JSONEq(t, `{"imageLayoutVersion": "1.0.0"}`, string(layout.files["oci-layout"]))
	var top, index struct {
		SchemaVersion int
		MediaType     string
		Manifests     []ociDescriptor
		Annotations   map[string]string
	}
	require.NoError(t, json.Unmarshal(layout.files["index.json"], &top))
	require.Equal(t, 2, top.SchemaVersion)
	require.Len(t, top.Manifests, 1)
	require.Equal(t, releaseVersion, top.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
	require.Equal(t, readText(t, prefix+"-image.digest"), top.Manifests[0].Digest+"\n")
	layout.decode(t, top.Manifests[0], ociIndex, &index)
	require.Equal(t, 2, index.SchemaVersion)
	require.Equal(t, ociIndex, index.MediaType)
	checkImageLabels(t, index.Annotations)

	require.Len(t, index.Manifests, len(machines))
	seen := map[string]bool{}
	for _, d := range index.Manifests {
		require.Equal(t, "linux", d.Platform.OS)
		require.Empty(t, d.ArtifactType, "what older skopeos drop, so that the digest changes")
		machine, ok := machines[d.Platform.Architecture]
		require.True(t, ok, "%+v", d)
		require.False(t, seen[d.Platform.Architecture], "%+v twice", d)
		seen[d.Platform.Architecture] = true
		root, entry := layout.unpack(t, d)
		program := filepath.Join(root, imageProgram)
		checkProgram(t, program, machine)
		checkProgram(t, filepath.Join(root, "labelprof"), machine)
		checkLicenses(t, filepath.Join(root, "LICENSES.txt"), program, filepath.Join(root, "labelprof"))
		checkBill(t, fmt.Sprintf("%s-image-linux-%s.cdx.json", prefix, d.Platform.Architecture))
		n := checkCertificates(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
		info, err := os.Stat(program)
		require.NoError(t, err)
		fmt.Printf("image %-5s: static, %d MiB, %d certificates\n", d.Platform.Architecture, info.Size()>>20, n)
		if d.Platform.Architecture != runtime.GOARCH {
			continue
		}
		for args, want := range map[string]string{"--version": releaseVersion, "components": "name: k8s_attributes"} {
			cmd := exec.Command(entry, args)
			cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", cmd, out)
			require.Contains(t, string(out), want)
		}
	}
	for name := range layout.files {
		if strings.HasPrefix(name, "blobs/") {
			require.True(t, layout.used[name], "%s is of no image", name)
		}
	}
	require.Len(t, layout.files, len(layout.used)+2, "only blobs, index.json and oci-layout")
	fmt.Print("image ", readText(t, prefix+"-image.digest"))
}

// readLayout reads an archive, whose files are all of the release's time, and root's.
func readLayout(t *testing.T, path string) ociLayout {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	layout := ociLayout{files: map[string][]byte{}, used: map[string]bool{}}
	eachFile(t, f, func(h *tar.Header, content []byte) {
		if h.Typeflag == tar.TypeReg {
			require.NotContains(t, layout.files, h.Name)
			layout.files[h.Name] = content
		}
	})
	return layout
}

// eachFile visits what is in an archive.
func eachFile(t *testing.T, r io.Reader, visit func(h *tar.Header, content []byte)) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF { //nolint:errorlint // as documented
			return
		}
		require.NoError(t, err)
		require.Contains(t, []byte{tar.TypeReg, tar.TypeDir}, h.Typeflag, h.Name)
		require.True(t, h.ModTime.Equal(time.Unix(releaseEpoch, 0)), "%s: %s", h.Name, h.ModTime)
		require.Equal(t, [2]int{0, 0}, [2]int{h.Uid, h.Gid}, h.Name)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		visit(h, content)
	}
}

// blob returns the bytes that a descriptor names, which have its digest and its size.
func (l *ociLayout) blob(t *testing.T, d ociDescriptor, mediaType string) []byte {
	t.Helper()
	require.Equal(t, mediaType, d.MediaType)
	algorithm, hex, _ := strings.Cut(d.Digest, ":")
	name := "blobs/" + algorithm + "/" + hex
	content, ok := l.files[name]
	require.True(t, ok, name)
	require.Equal(t, d.Digest, digestOf(content))
	require.Len(t, content, int(d.Size))
	l.used[name] = true
	return content
}

func (l *ociLayout) decode(t *testing.T, d ociDescriptor, mediaType string, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(l.blob(t, d, mediaType), to))
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// unpack puts the files of an image into a folder and returns it and the program that the image
// starts.
func (l *ociLayout) unpack(t *testing.T, d ociDescriptor) (root, entry string) {
	t.Helper()
	var manifest struct {
		SchemaVersion int
		MediaType     string
		Config        ociDescriptor
		Layers        []ociDescriptor
	}
	l.decode(t, d, ociManifest, &manifest)
	require.Equal(t, 2, manifest.SchemaVersion)
	require.Equal(t, ociManifest, manifest.MediaType)
	var image struct {
		OS, Architecture string
		Created          time.Time
		RootFS           struct {
			Type string
			IDs  []string `json:"diff_ids"`
		}
		Config struct {
			User            string
			Entrypoint, Cmd []string
			Env             []string
			Labels          map[string]string
		}
	}
	l.decode(t, manifest.Config, ociConfig, &image)
	require.Equal(t, [2]string{d.Platform.OS, d.Platform.Architecture}, [2]string{image.OS, image.Architecture})
	require.True(t, image.Created.Equal(time.Unix(releaseEpoch, 0)), image.Created)
	checkImageLabels(t, image.Config.Labels)
	ofDockerfile := dockerfileStarts(t)
	require.Equal(t, ofDockerfile["ENTRYPOINT"], image.Config.Entrypoint)
	require.Equal(t, ofDockerfile["CMD"], image.Config.Cmd)
	require.Empty(t, image.Config.User, "as the Dockerfile: root, with the capabilities that it is given")
	require.Empty(t, image.Config.Env)

	root = t.TempDir()
	modes := map[string]os.FileMode{}
	require.Equal(t, "layers", image.RootFS.Type)
	require.Len(t, image.RootFS.IDs, len(manifest.Layers))
	for i, layer := range manifest.Layers {
		unzip, err := gzip.NewReader(bytes.NewReader(l.blob(t, layer, ociLayer)))
		require.NoError(t, err)
		packed, err := io.ReadAll(unzip)
		require.NoError(t, err)
		require.Equal(t, image.RootFS.IDs[i], digestOf(packed))
		eachFile(t, bytes.NewReader(packed), func(h *tar.Header, content []byte) {
			name := strings.TrimSuffix(h.Name, "/")
			require.NotContains(t, modes, name)
			modes[name] = h.FileInfo().Mode()
			if h.Typeflag == tar.TypeDir {
				require.NoError(t, os.Mkdir(filepath.Join(root, name), modes[name].Perm()))
				return
			}
			require.NoError(t, os.WriteFile(filepath.Join(root, name), content, modes[name]))
		})
	}
	require.Equal(t, imageFiles, modes)
	return root, image.Config.Entrypoint[0]
}

// dockerfileStarts returns the words of ENTRYPOINT and CMD in deploy/Dockerfile.
func dockerfileStarts(t *testing.T) map[string][]string {
	t.Helper()
	stages := readDockerfile(t, filepath.Join(repositoryRoot, "deploy", "Dockerfile"))
	words := map[string][]string{}
	for _, i := range stages[len(stages)-1] {
		for _, word := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(i.args, -1) {
			words[i.name] = append(words[i.name], word[1])
		}
	}
	require.Equal(t, []string{imageProgram}, words["ENTRYPOINT"])
	return words
}

func checkImageLabels(t *testing.T, labels map[string]string) {
	t.Helper()
	want := map[string]string{}
	for key, value := range map[string]string{
		"title":    "otelcol-customlabels",
		"version":  releaseVersion,
		"revision": releaseRevision,
		"created":  time.Unix(releaseEpoch, 0).UTC().Format(time.RFC3339),
		"source":   "https://github.com/customlabels/otelcol-customlabels",
		"licenses": "Apache-2.0",
	} {
		want["org.opencontainers.image."+key] = value
	}
	require.Equal(t, want, labels)
}

// checkCertificates: they are authorities', each once; it returns how many.
func checkCertificates(t *testing.T, path string) int {
	t.Helper()
	seen := map[string]bool{}
	for rest := []byte(readText(t, path)); len(rest) > 0; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		require.NotNil(t, block, "what is no certificate")
		require.Equal(t, "CERTIFICATE", block.Type)
		c, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		require.True(t, c.IsCA, c.Subject)
		require.False(t, seen[string(c.Raw)], c.Subject)
		seen[string(c.Raw)] = true
	}
	require.Greater(t, len(seen), 100)
	return len(seen)
}
