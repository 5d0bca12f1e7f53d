//go:build linux && (amd64 || arm64)

package e2e

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const repositoryRoot = "../.."

// An instruction of a Dockerfile, with lines that go on joined.
type instruction struct{ name, args string }

// testImage runs what the Dockerfile runs, on a copy of what it copies, without an engine
// for containers, and the program that it ends with in a root with nothing else.
func testImage(t *testing.T) {
	requireOneMore(t)
	stages := readDockerfile(t, filepath.Join(repositoryRoot, "deploy", "Dockerfile"))
	require.Len(t, stages, 2)
	build, image := stages[0], stages[1]
	require.Regexp(t, `^--platform=\$BUILDPLATFORM golang:\d+\.\d+\.\d+-\w+ AS build$`, build[0].args, "a version in full")
	require.Equal(t, "scratch", image[0].args)
	requireGo(t, build[0].args)

	source := t.TempDir()
	env := append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH)
	copied := false
	for _, i := range build[1:] {
		switch i.name {
		case "ARG", "WORKDIR":
		case "ENV":
			env = append(env, strings.Fields(i.args)...)
		case "COPY":
			require.Equal(t, ". .", i.args)
			copyTree(t, repositoryRoot, source)
			copied = true
		case "RUN":
			require.True(t, copied)
			cmd := exec.Command("sh", "-ec", i.args)
			cmd.Dir, cmd.Env = source, env
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", i.args, out)
		default:
			require.Fail(t, "an instruction that is not known", i.name)
		}
	}

	root := t.TempDir()
	var entry []string
	for _, i := range image[1:] {
		switch i.name {
		case "COPY":
			words := strings.Fields(i.args)
			require.Len(t, words, 3)
			require.Equal(t, "--from=build", words[0])
			from, ours := strings.CutPrefix(words[1], "/src/")
			if ours {
				copyFile(t, filepath.Join(source, from), filepath.Join(root, words[2]), 0o755)
			} else {
				require.Equal(t, "/etc/ssl/certs/ca-certificates.crt", words[1], "of the image that builds")
			}
		case "ENTRYPOINT", "CMD":
			for _, word := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(i.args, -1) {
				entry = append(entry, word[1])
			}
		default:
			require.Fail(t, "an instruction that is not known", i.name)
		}
	}
	require.Equal(t, []string{"/otelcol-customlabels", "--config=/etc/otelcol-customlabels/config.yaml", profilesGate}, entry)

	program := filepath.Join(root, "otelcol-customlabels")
	requireStatic(t, program)
	requireStatic(t, filepath.Join(root, "labelprof"))
	checkLicenses(t, filepath.Join(root, "LICENSES.txt"), program, filepath.Join(root, "labelprof"))
	cmd := exec.Command("/otelcol-customlabels", "components")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, component := range []string{"custom_labels", "k8s_attributes", "otlp_grpc"} {
		require.Contains(t, string(out), "name: "+component)
	}
	made, err := os.ReadFile(program)
	require.NoError(t, err)
	ours, err := os.ReadFile(kubernetesProgram)
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(ours), sha256.Sum256(made), "not what make collector-kubernetes has made of the same sources")
	samples := runInRoot(t, root, entry)
	fmt.Printf("%-12s static, %d MiB, the same bytes as of make collector-kubernetes; alone in its root, %d labelled samples\n",
		"image", len(made)>>20, samples)
}

// requireOneMore: the image's collector is the other one with the names of pods.
func requireOneMore(t *testing.T) {
	t.Helper()
	const processor = "k8sattributesprocessor"
	modules := func(path string) (names []string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && key == "- gomod" {
				names = append(names, value)
			}
		}
		return names
	}
	all := modules(filepath.Join(repositoryRoot, "deploy", "kubernetes", "builder-config.yaml"))
	more := slices.IndexFunc(all, func(name string) bool { return strings.Contains(name, processor) })
	require.GreaterOrEqual(t, more, 0)
	require.Equal(t, modules(filepath.Join(repositoryRoot, "builder-config.yaml")), slices.Delete(all, more, more+1))
}

// runInRoot runs the collector where there is nothing but /proc and /sys, as in a container
// with the PIDs of the host, with the example of a gateway.
func runInRoot(t *testing.T, root string, entry []string) int64 {
	t.Helper()
	w := testutil.Start(t, "writer-v1-lib", "spin", "--labels", "1", "--threads", "1", "--seconds", "300")
	var labelled atomic.Int64
	address := startEndpoint(t, &sink{t: t, visit: countLabelled(w, &labelled)})
	for _, dir := range []string{"proc", "sys", "etc/otelcol-customlabels"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755)) //nolint:gosec // as in an image
	}
	copyFile(t, gatewayConfig, filepath.Join(root, "etc/otelcol-customlabels/config.yaml"), 0o644)
	require.NoError(t, os.WriteFile(filepath.Join(root, "changes.yaml"), []byte(toTestEndpoint), 0o600))
	const script = `mount --rbind /proc "$0/proc"; mount --rbind /sys "$0/sys"; exec chroot "$0" "$@"`
	inRoot := []string{"--mount", "--propagation", "private", "sh", "-ec", script, root}
	unshare, err := exec.LookPath("unshare")
	require.NoError(t, err)
	c := startChild(t, []string{"OTLP_GATEWAY=" + address, "HOST_NAME=here"}, unshare, slices.Concat(inRoot, entry, []string{"--config", "/changes.yaml"})...)
	c.awaitLine(collectorReady)
	require.Eventually(t, func() bool { return labelled.Load() >= 20 }, 3*time.Minute, 50*time.Millisecond)
	requireInspected(t, w.PID, unshare, append(inRoot, "/labelprof")...)
	c.stop()
	return labelled.Load()
}

// readDockerfile returns the instructions of each stage.
func readDockerfile(t *testing.T, name string) (stages [][]instruction) {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if name == "FROM" {
			stages = append(stages, nil)
		}
		require.NotEmpty(t, stages, "an instruction before FROM")
		last := len(stages) - 1
		stages[last] = append(stages[last], instruction{name, strings.TrimSpace(args)})
	}
	return stages
}

// requireGo: the compiler of the image is not older than the modules want.
func requireGo(t *testing.T, from string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, "go.mod"))
	require.NoError(t, err)
	wanted := regexp.MustCompile(`(?m)^go (\d+)\.(\d+)`).FindStringSubmatch(string(text))
	has := regexp.MustCompile(`golang:(\d+)\.(\d+)`).FindStringSubmatch(from)
	require.Equal(t, wanted[1:], has[1:])
}

// requireStatic: nothing is loaded when the program starts.
func requireStatic(t *testing.T, program string) {
	t.Helper()
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	for _, p := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type)
	}
	needed, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, needed)
}

// copyTree copies what is not left out by .dockerignore.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(from, ".dockerignore"))
	require.NoError(t, err)
	ignored := strings.Fields(string(text))
	entries, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range entries {
		if slices.Contains(ignored, e.Name()) {
			continue
		}
		out, err := exec.Command("cp", "-R", filepath.Join(from, e.Name()), to).CombinedOutput()
		require.NoError(t, err, string(out))
	}
}
