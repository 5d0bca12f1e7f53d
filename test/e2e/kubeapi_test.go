//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kubeRule allows verbs on resources, as a ClusterRole does.
type kubeRule struct{ groups, resources, verbs []string }

// A kubeAPI is an API server that knows one pod, and allows what its rules allow.
type kubeAPI struct {
	rules []kubeRule
	pod   map[string]any

	mu      sync.Mutex
	denied  []string
	allowed map[string]string // verb and resource -> the last query
}

// startKubeAPI serves until the end of the test and returns a file by which clients find it.
func startKubeAPI(t *testing.T, api *kubeAPI) (kubeconfig string) {
	t.Helper()
	api.allowed = map[string]string{}
	server := httptest.NewServer(api)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	kubeconfig = filepath.Join(publicDir(t), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q}}]
users: [{name: test, user: {token: test}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
current-context: test
`, server.URL)
	require.NoError(t, os.WriteFile(kubeconfig, []byte(text), 0o644)) //nolint:gosec // read by the other user
	return kubeconfig
}

func (a *kubeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// /api/v1/RESOURCE or /apis/GROUP/VERSION/RESOURCE
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if parts[0] == "apis" && len(parts) > 1 {
		group, parts = parts[1], parts[1:]
	}
	resource := parts[len(parts)-1]
	verb := "list"
	if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		verb = "watch"
	}
	w.Header().Set("Content-Type", "application/json")
	if !a.admit(group, resource, verb, r.URL.RawQuery) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden,
		})
		return
	}
	if verb == "list" {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{a.pod},
		})
		return
	}
	events := json.NewEncoder(w)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		_ = events.Encode(map[string]any{"type": "ADDED", "object": a.pod})
		_ = events.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{
				"resourceVersion": "1", "annotations": map[string]string{"k8s.io/initial-events-end": "true"},
			},
		}})
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func (a *kubeAPI) admit(group, resource, verb, query string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rule := range a.rules {
		if slices.Contains(rule.groups, group) && slices.Contains(rule.resources, resource) && slices.Contains(rule.verbs, verb) {
			a.allowed[verb+" "+resource] = query
			return true
		}
	}
	a.denied = append(a.denied, fmt.Sprintf("%s %s/%s", verb, group, resource))
	return false
}

// asked lists what was asked for and allowed, and what was not.
func (a *kubeAPI) asked() (allowed map[string]string, denied []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	allowed = map[string]string{}
	for what, query := range a.allowed {
		allowed[what] = query
	}
	return allowed, slices.Clone(a.denied)
}

// podOf is a pod with one container.
func podOf(containerID, node string) map[string]any {
	const name = "shop-5d4f8c7b9d-x2x4k"
	return map[string]any{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{
			"name": name, "namespace": "store", "uid": podUID, "resourceVersion": "1",
			"creationTimestamp": "2026-01-01T00:00:00Z",
			"labels":            map[string]any{"pod-template-hash": "5d4f8c7b9d"},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop-5d4f8c7b9d", "uid": "0f", "controller": true,
			}},
		},
		"spec": map[string]any{
			"nodeName":   node,
			"containers": []any{map[string]any{"name": "web", "image": "registry.example.com/shop:1.2.3"}},
		},
		"status": map[string]any{
			"phase": "Running", "podIP": "10.0.0.7", "startTime": "2026-01-01T00:00:00Z",
			"containerStatuses": []any{map[string]any{
				"name": "web", "image": "registry.example.com/shop:1.2.3", "imageID": "", "restartCount": 0, "ready": true,
				"containerID": "containerd://" + containerID,
			}},
		},
	}
}
