//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const releaseVersion = "9.8.7-test.1"

// packagedPages is where packages have the pages.
const packagedPages = "usr/share/doc/otelcol-customlabels"

// packaged returns the files of a package, with their modes.
func packaged(t *testing.T, sources string) map[string]os.FileMode {
	t.Helper()
	files := map[string]os.FileMode{
		"etc/otelcol-customlabels/config.yaml":                0o644,
		"etc/otelcol-customlabels/environment":                0o600,
		"usr/bin/labelprof":                                   0o755,
		"usr/bin/otelcol-customlabels":                        0o755,
		"usr/lib/systemd/system/otelcol-customlabels.service": 0o644,
		packagedPages + "/LICENSES.txt":                       0o644,
		packagedPages + "/copyright":                          0o644,
	}
	for path := range releasePages(t, sources) {
		files[filepath.Join(packagedPages, path)] = 0o644
	}
	return files
}

// releasePages makes the pages of a release of the sources in a folder, and returns their modes.
func releasePages(t *testing.T, sources string) map[string]os.FileMode {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "pages")
	requireRun(t, exec.Command(filepath.Join(sources, "scripts", "release-pages.sh"), releaseVersion, folder))
	requireLinks(t, folder)
	return filesBelow(t, folder)
}

// TestReleasePages: a release has the pages, with their examples, and where these lead.
func TestReleasePages(t *testing.T) {
	pages := releasePages(t, repositoryRoot)
	for _, path := range []string{
		"README.md", "SECURITY.md", "docs/operators.md", "examples/pyroscope.yaml", "examples/publish/c/labels.h",
		"deploy/prometheus/alerts.yaml", "receiver/customlabelsreceiver/README.md", "internal/bpf/LICENSE",
	} {
		require.EqualValues(t, 0o644, pages[path], path)
	}
}

// TestReleaseLicenses: what a release says of licenses has each module of the programs.
func TestReleaseLicenses(t *testing.T) {
	program, text := filepath.Join(t.TempDir(), "release"), filepath.Join(t.TempDir(), "LICENSES.txt")
	requireRun(t, inRepository("go", "build", "-C", "tools/release", "-o", program, "."))
	requireRun(t, inRepository("sh", "-c", `"$0" licenses build/otelcol-customlabels bin/labelprof >"$1"`, program, text))
	checkLicenses(t, text, collectorProgram, labelprofProgram)
}

// checkLicenses: the terms of Go, of this repository with its BPF programs, and of each module
// of static programs.
func checkLicenses(t *testing.T, path string, programs ...string) {
	t.Helper()
	text := readText(t, path)
	for _, name := range []string{"LICENSE", "internal/bpf/LICENSE", "internal/bpf/LICENSE.GPL-2.0", "std/LICENSE"} {
		require.Contains(t, text, "\n"+name+"\n", path)
	}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		require.NoError(t, err)
		require.NotEmpty(t, info.Deps)
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if m.Version != "(devel)" {
				require.Contains(t, text, "\n"+m.Path+"@"+m.Version+"/", path)
			}
		}
	}
}

// requireLinks follows the links of all pages below a folder, and none leads out of it.
func requireLinks(t *testing.T, folder string) {
	t.Helper()
	n := 0
	for name := range filesBelow(t, folder) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		for _, m := range localLink.FindAllStringSubmatch(readText(t, filepath.Join(folder, name)), -1) {
			path, _, _ := strings.Cut(m[1], "#")
			if path == "" || strings.Contains(path, "://") {
				continue
			}
			path = filepath.Join(filepath.Dir(name), path)
			require.True(t, filepath.IsLocal(path), "%s: %s", name, m[1])
			_, err := os.Stat(filepath.Join(folder, path))
			require.NoError(t, err, "%s: %s", name, m[1])
			n++
		}
	}
	fmt.Printf("%d links of a release's pages lead to a file of it\n", n)
	require.NotZero(t, n)
}

// TestRelease: `make release` makes the same bytes twice, in two folders, in full with an empty
// cache of Go the second time; and what it makes is whole. Its notes are a section of CHANGELOG.md.
func TestRelease(t *testing.T) {
	first := makeRelease(t, "first", "")
	second := makeRelease(t, "a/second", size(t.TempDir(), "", ""))
	sums := readText(t, filepath.Join(first, "SHA256SUMS"))
	fmt.Print(sums)
	require.Equal(t, sums, readText(t, filepath.Join(second, "SHA256SUMS")))
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = first
	requireRun(t, check)

	notes, err := inRepository("scripts/release-notes.sh", "Unreleased").Output()
	require.NoError(t, err)
	_, section, _ := strings.Cut(readText(t, filepath.Join(repositoryRoot, "CHANGELOG.md")), "## [Unreleased]\n")
	section, _, _ = strings.Cut(section, "\n## ")
	require.Equal(t, strings.TrimSpace(section), strings.TrimSpace(string(notes)))
	require.Error(t, inRepository("scripts/release-notes.sh", releaseVersion).Run(), "CHANGELOG.md knows nothing of it")

	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	checkImage(t, first, machines)
	packages := packaged(t, filepath.Join(first, "..", "..", ".."))
	rpmNames := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	for arch, machine := range machines {
		file := func(format string, args ...any) string { return filepath.Join(first, fmt.Sprintf(format, args...)) }
		var programs []string
		for _, program := range []string{"labelprof", "otelcol-customlabels"} {
			to := t.TempDir()
			requireRun(t, exec.Command("tar", "-xzf", file("%s-%s-linux-%s.tar.gz", program, releaseVersion, arch), "-C", to))
			path := filepath.Join(to, fmt.Sprintf("%s-%s-linux-%s", program, releaseVersion, arch), program)
			checkBill(t, file("%s-%s-linux-%s.cdx.json", program, releaseVersion, arch))
			programs = append(programs, path)
			checkLicenses(t, filepath.Join(filepath.Dir(path), "LICENSES.txt"), path)
			if program == "otelcol-customlabels" {
				requireLinks(t, filepath.Dir(path))
			}
		}
		deb, rpm := t.TempDir(), t.TempDir()
		debs, err := filepath.Glob(file("*_%s.deb", arch))
		require.NoError(t, err)
		require.Len(t, debs, 1)
		requireRun(t, exec.Command("dpkg-deb", "-x", debs[0], deb))
		rpms, err := filepath.Glob(file("*.%s.rpm", rpmNames[arch]))
		require.NoError(t, err)
		require.Len(t, rpms, 1)
		unpack := exec.Command("sh", "-c", `rpm2cpio "$0" | cpio -idm --quiet --no-absolute-filenames`, rpms[0])
		unpack.Dir = rpm
		requireRun(t, unpack)
		for _, root := range []string{deb, rpm} {
			require.Equal(t, packages, filesBelow(t, root))
			requireLinks(t, filepath.Join(root, packagedPages))
			checkLicenses(t, filepath.Join(root, packagedPages, "LICENSES.txt"), programs...)
			unit := readText(t, filepath.Join(root, "usr/lib/systemd/system/otelcol-customlabels.service"))
			require.Contains(t, unit, "ExecStart=/usr/bin/otelcol-customlabels ")
			require.NotContains(t, unit, "/usr/local")
			programs = append(programs, filepath.Join(root, "usr/bin/labelprof"), filepath.Join(root, "usr/bin/otelcol-customlabels"))
		}
		for _, program := range programs {
			checkProgram(t, program, machine)
			if arch != runtime.GOARCH {
				continue
			}
			out, err := exec.Command(program, "--version").CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), releaseVersion)
		}
		if arch == runtime.GOARCH {
			validate := exec.Command(filepath.Join(deb, "usr/bin/otelcol-customlabels"), "validate",
				"--config", filepath.Join(deb, "etc/otelcol-customlabels/config.yaml"), "--feature-gates=service.profilesSupport")
			validate.Env = append(os.Environ(), "OTLP_GATEWAY=gateway.example.com:4317", "HOST_NAME=here")
			requireRun(t, validate)
		}
	}
}

// makeRelease makes a release of a copy of the sources, in a folder of that name, and returns
// the folder with its files. cache is of Go; "": the usual one.
func makeRelease(t *testing.T, name, cache string) string {
	t.Helper()
	sources := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(sources, 0o755))
	requireRun(t, inRepository("sh", "-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$0"`, sources))
	bin, err := filepath.Abs(filepath.Join(repositoryRoot, "bin"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(bin, filepath.Join(sources, "bin")))
	release := exec.Command("scripts/release.sh", releaseVersion)
	release.Dir = sources
	release.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.Itoa(releaseEpoch), "SOURCE_REVISION="+releaseRevision)
	if cache != "" {
		release.Env = append(release.Env, "GOCACHE="+cache)
	}
	requireRun(t, release)
	return filepath.Join(sources, "build", "release", releaseVersion)
}

// TestReleaseOfOtherFiles: what was built beside the sources does not get into a release.
func TestReleaseOfOtherFiles(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	requireRun(t, inRepository("git", "clone", "--quiet", "--no-hardlinks", ".", clone))
	script, err := os.ReadFile(filepath.Join(repositoryRoot, "scripts", "release.sh"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(clone, "scripts", "release.sh"), script, 0o755)) //nolint:gosec // it is run
	commit := exec.Command("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--allow-empty", "-am", "now")
	commit.Dir = clone
	requireRun(t, commit)
	for _, other := range []string{"examples/publish/c/server", "internal/other.go"} {
		path := filepath.Join(clone, other)
		require.NoError(t, os.WriteFile(path, []byte("package other"), 0o600))
		release := exec.Command("scripts/release.sh", releaseVersion)
		release.Dir = clone
		out, err := release.CombinedOutput()
		require.ErrorContains(t, err, "exit status 1")
		require.Contains(t, string(out), other)
		require.NoError(t, os.Remove(path))
	}
}

func inRepository(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = repositoryRoot
	return cmd
}

func requireRun(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", cmd, out)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// checkProgram: it is static, of the machine, and names no folder that it was built in.
func checkProgram(t *testing.T, path string, machine elf.Machine) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, machine, f.Machine, path)
	require.False(t, slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), "%s is static", path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.False(t, bytes.Contains(text, []byte(os.TempDir()+"/TestRelease")), "%s names the folder that it was built in", path)
}

// checkBill: the modules are those of the program.
func checkBill(t *testing.T, path string) {
	t.Helper()
	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	require.NoError(t, json.Unmarshal([]byte(readText(t, path)), &bill))
	require.Equal(t, "CycloneDX", bill.BOMFormat)
	versions := map[string]string{}
	for _, c := range bill.Components {
		require.Equal(t, "pkg:golang/"+c.Name+"@"+c.Version, c.PURL)
		versions[c.Name] = c.Version
	}
	require.Equal(t, strings.TrimPrefix(runtime.Version(), "go"), versions["std"])
	require.NotEmpty(t, versions["go.opentelemetry.io/collector/pdata"])
	if strings.HasPrefix(filepath.Base(path), "otelcol") {
		require.Equal(t, "v"+releaseVersion, versions["github.com/customlabels/otelcol-customlabels"])
	}
}

// filesBelow returns the modes of the files below a folder.
func filesBelow(t *testing.T, root string) map[string]os.FileMode {
	t.Helper()
	files := map[string]os.FileMode{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files[name] = info.Mode()
		return err
	}))
	return files
}
