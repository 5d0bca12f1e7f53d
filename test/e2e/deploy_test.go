//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	systemdUnit   = "../../deploy/systemd/otelcol-customlabels.service"
	daemonSet     = "../../deploy/kubernetes/daemonset.yaml"
	gatewayConfig = "../../examples/otlp-gateway.yaml"
	// kubernetesProgram is that of the image.
	kubernetesProgram = "../../build/otelcol-kubernetes/otelcol-customlabels"

	// toTestEndpoint is merged over the configurations: the test's endpoint has no TLS.
	toTestEndpoint = `
receivers::custom_labels::samples_per_second: 199
receivers::custom_labels::report_interval: 500ms
exporters::otlp_grpc::tls::insecure: true
exporters::otlp_grpc::compression: gzip
service::telemetry::logs::encoding: json
service::telemetry::metrics::level: none
`

	// toTestCluster is merged as well where pods are asked for.
	toTestCluster = `
processors::k8s_attributes::auth_type: kubeConfig
`
)

// A deployment is what runs the collector somewhere.
type deployment struct {
	name         string
	program      string
	capabilities []string   // with CAP_
	config       string     // file
	args         []string   // but for --config
	rules        []kubeRule // what it may ask of a cluster's API server
	newPod       bool       // the API server knows of no container yet
}

// TestDeploy runs the collector as the systemd unit and the DaemonSet do: with their
// configurations and arguments, as an unprivileged user with exactly their capabilities.
// Labelled samples of another user's program arrive, with the name of its pod from an API
// server that allows no more than the DaemonSet's role, and the log misses no capability.
// And it builds the image's program as the Dockerfile does.
func TestDeploy(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	setParanoid(t, 2)
	var want []string
	for _, d := range documented {
		want = append(want, d.name)
	}
	slices.Sort(want)
	newPod := readDaemonSet(t)
	newPod.name, newPod.newPod = "new-pod", true
	for _, d := range []deployment{readUnit(t), readDaemonSet(t), newPod} {
		t.Run(d.name, func(t *testing.T) {
			require.Equal(t, want, d.capabilities, "those of README.md")
			// The quick form has no collector that knows pods.
			if d.program != kubernetesProgram || testutil.Full() {
				runDeployment(t, &d)
			}
		})
	}
	if testutil.Full() {
		t.Run("image", testImage)
	}
}

func runDeployment(t *testing.T, d *deployment) {
	t.Helper()
	w := testutil.Start(t, "writer-v1-lib", "spin", "--labels", "1", "--threads", "1", "--seconds", "300")
	var labelled atomic.Int64
	count := countLabelled(w, &labelled)
	var resource atomic.Pointer[map[string]string]
	out := &sink{t: t, visit: func(b flatBatch) {
		count(b)
		for i := range b.hits {
			if b.hits[i].pid == int64(w.PID) {
				resource.Store(&b.hits[i].resource)
			}
		}
	}}
	dir := publicDir(t)
	program, config := filepath.Join(dir, "otelcol-customlabels"), filepath.Join(dir, "config.yaml")
	changes := filepath.Join(dir, "changes.yaml")
	copyFile(t, d.program, program, 0o755)
	copyFile(t, d.config, config, 0o644)
	env := []string{"OTLP_GATEWAY=" + startEndpoint(t, out), "NODE_NAME=here", "HOST_NAME=here"}
	more := toTestEndpoint
	var api *kubeAPI
	contained := false
	if d.rules != nil {
		api = &kubeAPI{rules: d.rules, pod: podOf(containerID, "here")}
		group := "cri-containerd-" + containerID + ".scope" // as of a static pod
		if d.newPod {
			delete(api.pod["status"].(map[string]any), "containerStatuses")
			group = "kubepods-burstable-pod" + strings.ReplaceAll(podUID, "-", "_") + ".slice:cri-containerd:" + containerID
		}
		contained = moveToContainer(t, w.PID, group)
		env = append(env, "KUBECONFIG="+startKubeAPI(t, api))
		more += toTestCluster
	}
	require.NoError(t, os.WriteFile(changes, []byte(more), 0o644)) //nolint:gosec // read by the other user

	var names []string
	for _, c := range d.capabilities {
		names = append(names, "+"+strings.ToLower(strings.TrimPrefix(c, "CAP_")))
	}
	caps := "-all," + strings.Join(names, ",")
	asNobody := []string{
		"--reuid", strconv.Itoa(nobody), "--regid", strconv.Itoa(nobody), "--clear-groups", "--no-new-privs",
		"--inh-caps", caps, "--ambient-caps", caps, "--bounding-set", caps,
	}
	setpriv, err := exec.LookPath("setpriv")
	require.NoError(t, err)
	c := startChild(t, env, setpriv, slices.Concat(asNobody, []string{program, "--config", config, "--config", changes}, d.args)...)
	c.awaitLine(collectorReady)
	require.Eventually(t, func() bool { return labelled.Load() >= 20 }, 3*time.Minute, 50*time.Millisecond)
	if api != nil {
		requirePod(t, api, &resource, contained, d.newPod)
	}
	labelprof := filepath.Join(dir, "labelprof")
	copyFile(t, labelprofProgram, labelprof, 0o755)
	requireInspected(t, w.PID, setpriv, append(asNobody, labelprof)...)
	c.stop()
	require.NotContains(t, c.stderr.String(), "missing capability")
	fmt.Printf("%-12s as an unprivileged user with %s: %d labelled samples of another user\n",
		d.name, strings.Join(d.capabilities, " "), labelled.Load())
}

// requireInspected asks labelprof, which a command runs, why a writer has no labels: it has some.
func requireInspected(t *testing.T, pid int, command string, args ...string) {
	t.Helper()
	out, err := exec.Command(command, append(args, "inspect", strconv.Itoa(pid))...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "active: labels can be read")
}

// podUID is that of the pod of the API server.
const podUID = "8c7f3ba2-7d06-4a0e-a7c2-1d1d2a2a2a2a"

// containerID is one as container runtimes make them.
const containerID = "3f1c0a9d5e7b42688c1d2e3f40516273849a5b6c7d8e9f00112233445566778a"

// moveToContainer moves a process to a cgroup of the name that one of a container has.
// Where the machine lets nobody make any, it tells, and returns false.
func moveToContainer(t *testing.T, pid int, group string) bool {
	t.Helper()
	_, _, err := moveToCgroup(t, pid, group)
	if err != nil {
		fmt.Printf("container: this machine lets root make no cgroup v2: %v\n", err)
	}
	return err == nil
}

// requirePod waits for the names of the writer's pod, and checks what was asked for them.
func requirePod(t *testing.T, api *kubeAPI, resource *atomic.Pointer[map[string]string], contained, newPod bool) {
	t.Helper()
	if contained {
		want := map[string]string{
			"container.id": containerID, "k8s.pod.name": "shop-5d4f8c7b9d-x2x4k", "k8s.namespace.name": "store",
			"k8s.deployment.name": "shop", "k8s.node.name": "here", "k8s.pod.uid": podUID,
		}
		if !newPod {
			want["k8s.container.name"], want["container.image.name"] = "web", "registry.example.com/shop"
		}
		has := func() bool {
			for key, value := range want {
				if (*resource.Load())[key] != value {
					return false
				}
			}
			return true
		}
		if !assert.Eventually(t, has, 3*time.Minute, 50*time.Millisecond) {
			require.Failf(t, "no names of the pod", "%v", *resource.Load())
		}
	}
	require.Eventually(t, func() bool {
		allowed, _ := api.asked()
		return len(allowed) > 0
	}, 3*time.Minute, 50*time.Millisecond)
	allowed, denied := api.asked()
	require.Empty(t, denied, "more than the role allows")
	for what, query := range allowed {
		require.Contains(t, query, "spec.nodeName%3Dhere", what)
		fmt.Printf("%-12s asked the API server to %s of its node\n", "kubernetes", what)
	}
}

// publicDir is a folder that other users can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "deploy")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // so
	return dir
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, mode))
}

// readUnit reads the systemd unit, which runs with the example of a gateway.
func readUnit(t *testing.T) deployment {
	t.Helper()
	text, err := os.ReadFile(systemdUnit)
	require.NoError(t, err)
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			if key == "Environment" { // each is one more
				value = strings.TrimSpace(settings[key] + " " + value)
			}
			settings[key] = value
		}
	}
	require.Equal(t, settings["AmbientCapabilities"], settings["CapabilityBoundingSet"])
	require.Equal(t, "yes", settings["NoNewPrivileges"])
	refused := settings["SystemCallFilter"] // the last one
	require.True(t, strings.HasPrefix(refused, "~"), refused)
	require.Contains(t, strings.Fields(refused), "process_vm_writev", "with CAP_SYS_PTRACE it writes to any process")
	d := deployment{name: "systemd", program: collectorProgram, config: gatewayConfig, capabilities: strings.Fields(settings["AmbientCapabilities"])}
	slices.Sort(d.capabilities)
	d.args = withoutConfig(t, strings.Fields(settings["ExecStart"])[1:])
	require.Equal(t, "HOST_NAME=%H GOMEMLIMIT=512MiB", settings["Environment"])
	return d
}

// withoutConfig takes the one configuration out of arguments.
func withoutConfig(t *testing.T, args []string) (rest []string) {
	t.Helper()
	configs := 0
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--config":
			configs++
			i++
		case strings.HasPrefix(args[i], "--config="):
			configs++
		default:
			rest = append(rest, args[i])
		}
	}
	require.Equal(t, 1, configs)
	return rest
}

// readDaemonSet reads the Kubernetes objects: the configuration is in one of them.
func readDaemonSet(t *testing.T) deployment {
	t.Helper()
	text, err := os.ReadFile(daemonSet)
	require.NoError(t, err)
	d := deployment{name: "kubernetes", program: kubernetesProgram}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(doc))
		require.NoError(t, err)
		object, err := retrieved.AsConf()
		require.NoError(t, err)
		switch object.Get("kind") {
		case "ClusterRole":
			for _, r := range object.Get("rules").([]any) {
				rule := r.(map[string]any)
				d.rules = append(d.rules, kubeRule{texts(rule["apiGroups"]), texts(rule["resources"]), texts(rule["verbs"])})
			}
		case "ClusterRoleBinding":
			require.Equal(t, "otelcol-customlabels", object.Get("roleRef::name"))
			subject := object.Get("subjects").([]any)[0].(map[string]any)
			require.Equal(t, "otelcol-customlabels", subject["name"])
			require.Equal(t, "custom-labels", subject["namespace"])
		case "ConfigMap":
			data, ok := object.Get("data").(map[string]any)["config.yaml"].(string)
			require.True(t, ok)
			d.config = filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(d.config, []byte(data), 0o600))
			grace, err := time.ParseDuration(parseYAML(t, data).Get("processors::k8s_attributes::pod_delete_grace_period").(string))
			require.NoError(t, err)
			defaults := customlabelsreceiver.NewFactory().CreateDefaultConfig().(*customlabelsreceiver.Config)
			require.Greater(t, grace, 20*defaults.Metrics.Interval, "for as long sums of a process that has ended are sent")
			reader := parseYAML(t, data).Get("service::telemetry::metrics::readers").([]any)[0]
			require.Equal(t, 8888, confmap.NewFromStringMap(reader.(map[string]any)).Get("pull::exporter::prometheus::port"))
		case "DaemonSet":
			pod := object.Get("spec::template::spec").(map[string]any)
			require.Equal(t, true, pod["hostPID"])
			require.Equal(t, "otelcol-customlabels", pod["serviceAccountName"])
			require.NotContains(t, pod, "automountServiceAccountToken", "by which it asks the API server")
			container := pod["containers"].([]any)[0].(map[string]any)
			d.args = withoutConfig(t, texts(container["args"]))
			require.Equal(t, []any{map[string]any{"name": "metrics", "containerPort": 8888}}, container["ports"])
			require.Equal(t, map[string]any{"path": "/metrics", "port": "metrics"}, container["readinessProbe"].(map[string]any)["httpGet"])
			caps := container["securityContext"].(map[string]any)["capabilities"].(map[string]any)
			require.Equal(t, []string{"ALL"}, texts(caps["drop"]))
			for _, c := range texts(caps["add"]) {
				d.capabilities = append(d.capabilities, "CAP_"+c)
			}
			slices.Sort(d.capabilities)
		}
	}
	require.NotEmpty(t, d.config)
	require.NotEmpty(t, d.rules)
	return d
}

func texts(list any) (out []string) {
	for _, v := range list.([]any) {
		out = append(out, fmt.Sprint(v))
	}
	return out
}
