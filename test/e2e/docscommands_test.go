//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// docsTimeout is for the commands of one block.
const docsTimeout = 10 * time.Minute

const (
	makeRuns     = "make runs this very test, or what takes minutes: only that it knows the target"
	contributors = "works on the repository itself: only that make knows the target"
	needDocker   = "needs a container engine: TestDeploy runs what the Dockerfile runs"
	needBackend  = "needs a Pyroscope: TestBackends pushes to a stand-in for one"
	needFleet    = "needs a cluster: TestFleet runs the configurations that the manifests have"
	needHosts    = "runs until it is ended: TestPrometheus runs it"
	needRegistry = "needs a registry: TestRelease reads what would be pushed"
	needAgent    = "needs an agent that runs: TestPrometheus scrapes some"
	needKube     = "needs a cluster: TestDeploy reads the manifest and runs what is in it"
)

// notRun are commands that are checked and not run, with the reason.
var notRun = map[string]string{
	`sudo env "PATH=$PATH" make run # the demonstration: live table of CPU by tenant beside the true shares, 40 seconds`: makeRuns,
	`make test # before every commit: lint, unit tests, promises end to end in a quick form`:                             makeRuns,
	`make collector`: makeRuns,

	`scripts/setup.sh test # once: what builds and tests need, on Debian or Ubuntu`:                             contributors,
	`make collector labelprof writers # build/otelcol-customlabels, bin/labelprof, build/writers`:               contributors,
	`go test ./internal/labels # edit; test the package`:                                                        contributors,
	`make generate # after internal/bpf/src or metadata.yaml; commit what it makes`:                             contributors,
	`make web # after cmd/labelprof/web/src; commit what it makes`:                                              contributors,
	`make format lint # Go, C, shell; which package may import which`:                                           contributors,
	`make e2e-attribution # one promise in full, as root; make help lists them`:                                 contributors,
	`make mutants MUTANTS='-package labels' # does a test notice each wrong change? add mutations for new code`: contributors,
	`make test # before every commit, as root or with sudo: what CI runs`:                                       contributors,

	`docker build -f deploy/Dockerfile -t registry.example.com/otelcol-customlabels:0.1.0 .`: needDocker,
	`docker run --detach --name=otelcol-customlabels --restart=unless-stopped --memory=1g --pid=host --cgroupns=host --cap-drop=ALL --cap-add=BPF --cap-add=PERFMON --cap-add=SYS_PTRACE ` +
		`--cap-add=DAC_READ_SEARCH --cap-add=CHECKPOINT_RESTORE --cap-add=SYSLOG --security-opt apparmor=unconfined --read-only --security-opt no-new-privileges ` +
		`-e OTLP_GATEWAY=gateway.example.com:4317 -e HOST_NAME="$(hostname)" -e GOMEMLIMIT=512MiB -v "$PWD/examples/otlp-gateway.yaml:/etc/otelcol-customlabels/config.yaml:ro" ` +
		`registry.example.com/otelcol-customlabels:0.1.0`: needDocker,

	`skopeo copy --all --preserve-digests oci-archive:otelcol-customlabels-0.1.0-oci.tar ` +
		`docker://registry.example.com/otelcol-customlabels:0.1.0`: needRegistry,
	`mkdir image && tar -xf otelcol-customlabels-0.1.0-oci.tar -C image`: needRegistry,
	`crane push image registry.example.com/otelcol-customlabels:0.1.0`:   needRegistry,
	`sed "s|/otelcol-customlabels:0.1.0|/otelcol-customlabels@$(cat build/release/0.1.0/otelcol-customlabels-0.1.0-image.digest)|" ` +
		`deploy/kubernetes/daemonset.yaml >daemonset.yaml`: needRegistry,
	`kubectl apply -f daemonset.yaml`: needKube,

	`bin/labelprof push --server https://pyroscope.example.com --tenant team-a profiles.otlp`: needBackend,

	`docker build -f deploy/fleet/Dockerfile -t registry.example.com/otelcol-gateway:0.1.0 .`:              needDocker,
	`kubectl -n custom-labels-gateways create secret tls otelcol-gateway-tls --cert=tls.crt --key=tls.key`: needKube,
	`kubectl -n custom-labels create configmap otelcol-gateway-ca --from-file=ca.crt`:                      needKube,
	`kubectl apply -k deploy/fleet/direct`:                                                                 needFleet,
	`kubectl -n custom-labels-gateways rollout status deployment/otelcol-gateway`:                          needFleet,
	`prometheus --config.file=deploy/prometheus/prometheus.yml --web.enable-otlp-receiver ` +
		`--enable-feature=created-timestamp-zero-ingestion`: needHosts,

	`kubectl apply -f deploy/kubernetes/daemonset.yaml`:                         needKube,
	`kubectl -n custom-labels rollout status daemonset/otelcol-customlabels`:    needKube,
	`curl -s http://127.0.0.1:8888/metrics | grep custom_labels`:                needAgent,
	`kubectl -n custom-labels port-forward daemonset/otelcol-customlabels 8888`: needKube,
}

// ofDocs are programs that stand in for those of the pages, by name. REAL is the real one.
var ofDocs = map[string]string{
	// It is root that runs the tests.
	"sudo": `exec "$@"`,
	// Of the machine that onMachine makes; the service is started as its unit says.
	"systemctl": `unit=machine/etc/systemd/system/otelcol-customlabels.service
[[ -s $unit ]] || exit 1
[[ $1 == enable ]] || exit 0
says() { sed -n "s/^$1=-\\?//p" "$unit" | sed -E 's,/(etc|usr/local)/,machine&,g'; }
set -a
eval "$(says Environment | sed 's/%H/here/')"
. "./$(says EnvironmentFile)" || exit 1
read -ra start <<<"$(says ExecStart)"
[[ -x ${start[0]} ]] && exec otelcol-customlabels "${start[@]:1}"`,
	// A program needs a moment until it has published.
	"labelprof": `[[ ${1-} == inspect ]] || exec REAL "$@"
for _ in {1..1800}; do
	if said=$(REAL "$@" 2>&1) && [[ $said == *tenant=acme* ]]; then
		echo "$said"
		exit
	fi
	sleep 0.1
done
echo "$said"
exit 1`,
	// Until it is ready, without leaving this machine. It says so a moment before it
	// catches signals.
	"otelcol-customlabels": `[[ ${1-} == validate ]] && exec REAL "$@"
log=$(mktemp -p .)
REAL "$@" --config "$DOCS_CHANGES" >"$log" 2>&1 &
for _ in {1..1800}; do
	grep -q "Everything is ready" "$log" && break
	kill -0 $! || { cat "$log"; exit 1; }
	sleep 0.1
done
kill $!
wait $! || [[ $? == 143 ]]`,
}

// docsChanges are merged over the configurations that commands start.
const docsChanges = `
exporters::otlp_grpc::endpoint: 127.0.0.1:9
exporters::otlp_grpc::tls::insecure: true
exporters::otlp_grpc::retry_on_failure::enabled: false
service::telemetry::metrics::level: none
`

// intoMachine are the places of a script that it would write to on this machine.
var intoMachine = regexp.MustCompile(`([\s>])/(etc|usr/local)/`)

// standIn has the collector of a checkout start as an installed one does, until it is ready.
func standIn(script string) string {
	return strings.ReplaceAll(script, "build/otelcol-customlabels --config", "otelcol-customlabels --config")
}

// onMachine has a script install into a folder of its own rather than into this machine.
func onMachine(script string) string { return intoMachine.ReplaceAllString(script, "${1}machine/$2/") }

// A docsPlace is where the commands of one page run: a folder like the root of the
// repository, with the files that the page has written.
type docsPlace struct {
	root, dir string
	env       []string
}

func newDocsPlace(t *testing.T, root string) *docsPlace {
	t.Helper()
	p := &docsPlace{root: root, dir: t.TempDir()}
	for _, name := range []string{"bin", "build", "builder-config.yaml", "deploy", "examples"} {
		require.NoError(t, os.Symlink(filepath.Join(root, name), filepath.Join(p.dir, name)))
	}
	stand := t.TempDir()
	real := map[string]string{
		"labelprof":            filepath.Join(root, "bin", "labelprof"),
		"otelcol-customlabels": filepath.Join(root, "build", "otelcol-customlabels"),
	}
	for name, script := range ofDocs {
		script = "#!/usr/bin/env bash\nset -u\n" + strings.ReplaceAll(script, "REAL", "'"+real[name]+"'") + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(stand, name), []byte(script), 0o755)) //nolint:gosec // a program
	}
	changes := filepath.Join(stand, "changes.yaml")
	require.NoError(t, os.WriteFile(changes, []byte(docsChanges), 0o600))
	p.env = append(os.Environ(), "PATH="+stand+":"+os.Getenv("PATH"), "DOCS_CHANGES="+changes)
	return p
}

// write makes a file that a page shows.
func (p *docsPlace) write(t *testing.T, name, text string) {
	t.Helper()
	require.True(t, filepath.IsLocal(name), name)
	name = filepath.Join(p.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755)) //nolint:gosec // as people would
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// run runs the commands of a block as one script, but for those that are listed.
func (p *docsPlace) run(t *testing.T, script string) (ran int, checked []string) {
	t.Helper()
	var rest []string
	for _, line := range commandLines(script) {
		if reason, ok := notRun[line]; ok {
			require.NotEmpty(t, reason)
			p.check(t, line)
			checked = append(checked, line)
			continue
		}
		rest = append(rest, line)
		if !noCommand.MatchString(line) {
			ran++
		}
	}
	if ran > 0 {
		p.bash(t, p.dir, onMachine(standIn(strings.Join(rest, "\n"))))
	}
	return ran, checked
}

// check does with a command what can be done without running it.
func (p *docsPlace) check(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		if word == "make" {
			p.bash(t, p.root, "make -n "+words[i+1])
			return
		}
		path, _, _ := strings.Cut(strings.TrimPrefix(strings.Trim(word, `"`), "$PWD/"), ":")
		for _, folder := range []string{"build/", "deploy/", "examples/", "docs/"} {
			if strings.HasPrefix(path, folder) && !strings.HasPrefix(path, "build/release/") {
				_, err := os.Stat(filepath.Join(p.root, path))
				require.NoError(t, err)
			}
		}
	}
	p.bash(t, p.dir, "bash -n <<'END'\n"+line+"\nEND\n")
}

// bash runs a script, whatever it leaves behind ends with it.
func (p *docsPlace) bash(t *testing.T, dir, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), docsTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, p.env
	// A group of its own; files rather than pipes, which background programs would hold open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be nothing left
	}
	output, readErr := os.ReadFile(said.Name())
	require.NoError(t, readErr)
	require.NoError(t, err, "%s\nsaid:\n%s", script, bytes.TrimSpace(output))
	if testing.Verbose() && bytes.Contains(output, []byte("tenant=acme")) {
		for line := range strings.Lines(string(output)) {
			if strings.Contains(line, "TLS model") || strings.Contains(line, "tenant=acme") || strings.HasPrefix(line, "source") {
				fmt.Print("  ", line)
			}
		}
	}
}
