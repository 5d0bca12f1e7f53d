//go:build linux && (amd64 || arm64)

package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const repositoryRoot = "../.."

// An instruction of a Dockerfile, with lines that go on joined.
type instruction struct{ name, args string }

// testImage runs what the Dockerfile runs, on a copy of what it copies, without an engine
// for containers, and the program that it ends with in a root with nothing else.
func testImage(t *testing.T) {
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
			entry = append(entry, regexp.MustCompile(`"([^"]*)"`).FindAllString(i.args, -1)...)
		default:
			require.Fail(t, "an instruction that is not known", i.name)
		}
	}
	require.Equal(t, []string{`"/otelcol-customlabels"`, `"--config=/etc/otelcol-customlabels/config.yaml"`, `"` + profilesGate + `"`}, entry)

	program := filepath.Join(root, "otelcol-customlabels")
	requireStatic(t, program)
	cmd := exec.Command("/otelcol-customlabels", "components")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: root}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, component := range []string{"custom_labels", "k8s_attributes", "otlp_grpc"} {
		require.Contains(t, string(out), "name: "+component)
	}
	info, err := os.Stat(program)
	require.NoError(t, err)
	fmt.Printf("%-12s static, of %d MiB, and runs alone in its root\n", "image", info.Size()>>20)
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
