package profile

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// named builds the samples of two processes that have one set of labels: the first has a resource beyond its PID.
func named(t *testing.T, prefix string, set *labels.Set, resource map[string]any) (attrs [2]map[string]any, own map[string]any, stats BuildStats) {
	t.Helper()
	return namedBy(t, Options{LabelPrefix: prefix}, set, resource)
}

func namedBy(t *testing.T, opts Options, set *labels.Set, resource map[string]any) (attrs [2]map[string]any, own map[string]any, stats BuildStats) {
	t.Helper()
	opts.Period, opts.PrometheusNames = 1, true
	b := NewBuilder(opts)
	for process := range uint64(2) {
		b.Add(&Sample{Process: process, TimeUnixNano: 1500, UserFrames: []uint64{1}, Set: set})
	}
	p, stats := buildOne(b, &resolver{resource: func(process uint64, attrs pcommon.Map) {
		if process == 0 {
			for key, value := range resource {
				require.NoError(t, attrs.PutEmpty(key).FromRaw(value))
			}
		}
	}}, 1000, 2000)
	flat := flatten(t, p)
	require.Len(t, flat, 2)
	for i := range attrs {
		attrs[i] = flat[i].attrs
		seen := map[string]string{}
		for name := range p.ResourceProfiles().At(i).Resource().Attributes().All() {
			requireBackendName(t, seen, name)
		}
		for name := range flat[i].attrs {
			requireBackendName(t, seen, name)
		}
	}
	return attrs, p.ResourceProfiles().At(0).Resource().Attributes().AsRaw(), stats
}

// requireBackendName requires that a backend takes a name, and has it from no other attribute.
func requireBackendName(t *testing.T, seen map[string]string, name string) {
	t.Helper()
	require.Equal(t, labels.PrometheusName(name), name)
	same := labels.Undotted(name)
	require.Empty(t, seen[same], "%q is another's, too", name)
	seen[same] = name
}

// Labels have names that Prometheus takes, each once; which one keeps a name is as without that.
func TestPrometheusNames(t *testing.T) {
	const standard = "process.context.label."
	for name, tc := range map[string]struct {
		prefix string
		set    *labels.Set
		want   map[string]any
		stats  BuildStats
	}{
		"as it is":           {"p.", labels.NewSet(false, v1("http.route", "1"), context("a_b", "2")), map[string]any{"p.http.route": "1", "a_b": "2"}, BuildStats{}},
		"other characters":   {standard, labels.NewSet(false, v1("span id", "1"), v1("output-level", "2")), map[string]any{standard + "span_id": "1", standard + "output_level": "2"}, BuildStats{EscapedKeys: 4}},
		"prefix":             {"my-app/", labels.NewSet(false, v1("a", "1")), map[string]any{"my_app_a": "1"}, BuildStats{EscapedKeys: 2}},
		"first digit":        {"", labels.NewSet(false, v1("2xx", "1")), map[string]any{"_2xx": "1"}, BuildStats{EscapedKeys: 2}},
		"the backend's own":  {"", labels.NewSet(false, v1("__name__", "1")), map[string]any{"_name__": "1"}, BuildStats{EscapedKeys: 2}},
		"binary key":         {"", labels.NewSet(false, v1("a\xff", "1")), map[string]any{"a_xff": "1"}, BuildStats{EscapedKeys: 2}},
		"no key":             {"", labels.NewSet(false, v1("", "1")), map[string]any{"custom_labels.empty_key": "1"}, BuildStats{}},
		"the empty key's":    {"", labels.NewSet(false, v1("", "1"), v1("custom_labels_empty.key", "2")), map[string]any{"custom_labels.empty_key": "1", standard + "custom_labels_empty.key": "2"}, BuildStats{RenamedKeys: 2}},
		"first is kept":      {"", labels.NewSet(false, v1("a b", "1"), v1("a-b", "2"), v1("a.b", "3"), v1("a_b", "4")), map[string]any{"a_b": "1"}, BuildStats{EscapedKeys: 2, DroppedLabels: 6}},
		"dots":               {"", labels.NewSet(false, v1("a.b", "1"), v1("a_b", "2")), map[string]any{"a.b": "1"}, BuildStats{DroppedLabels: 2}},
		"thread context":     {"", labels.NewSet(false, v1("a.b", "1"), context("a_b", "2")), map[string]any{"a_b": "2"}, BuildStats{DroppedLabels: 2}},
		"ours":               {"", labels.NewSet(false, v1("thread_id", "1"), v1("trace id", "2")), map[string]any{standard + "thread_id": "1", standard + "trace_id": "2"}, BuildStats{RenamedKeys: 4, EscapedKeys: 2}},
		"ours, by prefix":    {"thread", labels.NewSet(false, v1("-name", "1")), map[string]any{standard + "_name": "1"}, BuildStats{RenamedKeys: 2, EscapedKeys: 2}},
		"what is added":      {"", labels.NewSet(false, v1("host name", "1"), v1("k8s.pod.name", "2"), v1("container_image_id", "3")), map[string]any{standard + "host_name": "1", standard + "k8s.pod.name": "2", standard + "container_image_id": "3"}, BuildStats{RenamedKeys: 6, EscapedKeys: 2}},
		"process of another": {"", labels.NewSet(false, v1("process_pid", "1")), map[string]any{standard + "process_pid": "1"}, BuildStats{RenamedKeys: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			attrs, _, stats := named(t, tc.prefix, tc.set, nil)
			require.Equal(t, tc.want, attrs[0])
			require.Equal(t, tc.want, attrs[1])
			tc.stats.Resources, tc.stats.Samples = 2, 2
			require.Equal(t, tc.stats, stats)
		})
	}
}

// Attributes of resources have such names, too, and labels with a name of one of their own process get another one.
func TestPrometheusNamesOfResources(t *testing.T) {
	for range 16 { // the order of a map is another one each time
		set := labels.NewSet(false, v1("service_name", "mine"), v1("region", "eu"))
		attrs, resource, stats := named(t, "", set, map[string]any{
			"service.name": "shop", "service_name": "other", "service name": "another", "region": "us", "my key": "1", "my/key": "2",
			"host_name": "forged", "host.name": "here", "k8s_pod_name": "forged", "k8s.pod_name": "forged", "k8s.pod.name": "replaced",
			"container_image.name": "forged", "container.image_name": "forged", "k8s.pod.label.my_app": "replaced", "k8s.node.labels.my_zone": "4", "k8s.pod.annotations.my/zone": "forged",
			"k8s.pod.annotation.a_b": "5", "k8s.namespace.annotations.a_b": "6", "k8s.pod.start_time": "7", "k8s.container.restart_count": "8",
			"container.image.repo_digests": "9", "k8s.container.status.last_terminated_reason": "10", "trace.id": "3", "__name__": "4", "list": []any{"a b"}, "\xff": "5",
		})
		require.Equal(t, map[string]any{
			"process.pid": int64(0), "service.name": "shop", "region": "us", "my_key": "1", "host.name": "here", "_name__": "4",
			"k8s.pod.name": "replaced", "k8s.pod.label.my_app": "replaced", "k8s.node.labels.my_zone": "4",
			"k8s.pod.annotation.a_b": "5", "k8s.namespace.annotations.a_b": "6", "k8s.pod.start_time": "7", "k8s.container.restart_count": "8",
			"container.image.repo_digests": "9", "k8s.container.status.last_terminated_reason": "10",
			"list": []any{"a b"}, "_xff": "5",
		}, resource)
		require.Equal(t, map[string]any{"process.context.label.service_name": "mine", "process.context.label.region": "eu"}, attrs[0])
		require.Equal(t, map[string]any{"service_name": "mine", "region": "eu"}, attrs[1], "the other process has no such attribute")
		require.Equal(t, BuildStats{Resources: 2, Samples: 2, RenamedKeys: 2, EscapedKeys: 3, DroppedLabels: 10}, stats)
	}
}

// Where a processor names the service of a process that names none, no label has its names, nor passes a resource's
// attribute for one.
func TestPrometheusNamesOfServices(t *testing.T) {
	const standard = "process.context.label."
	set := labels.NewSet(false, v1("service_name", "mine"), v1("service.version", "2"))
	for added, want := range map[bool]map[string]any{
		false: {"service_name": "mine", "service.version": "2"},
		true:  {standard + "service_name": "mine", standard + "service.version": "2"},
	} {
		attrs, resource, _ := namedBy(t, Options{ServiceAdded: added}, set, map[string]any{"service_namespace": "shop", "service.instance.id": "1"})
		require.Equal(t, want, attrs[0])
		require.Equal(t, !added, resource["service_namespace"] == "shop")
		require.Equal(t, "1", resource["service.instance.id"])
	}
}

// Where a label goes that gives way to its process's resource, nothing of the resource is.
func TestPrometheusNamesOfResourcesAsFallback(t *testing.T) {
	const standard = "process.context.label."
	set := labels.NewSet(false, v1("region", "eu"), v1("zone", "1"))
	for prefix, want := range map[string]map[string]any{
		"":       {standard + "region": "eu", "zone": "1"},
		standard: {standard + "region": "eu", standard + "zone": "1"},
	} {
		attrs, resource, stats := named(t, prefix, set, map[string]any{
			"region": "us", standard + "region": "forged", "process_context label/region": "forged", "process_context_label_zone": "forged", "process.context": "mine",
		})
		require.Equal(t, want, attrs[0])
		require.Equal(t, map[string]any{"process.pid": int64(0), "region": "us", "process.context": "mine"}, resource)
		require.EqualValues(t, 3, stats.DroppedLabels)
	}
}

// What is the kernel's to say no label says in a name that a backend has for it, also where the resource says nothing.
func TestPrometheusNamesOfKernel(t *testing.T) {
	set := labels.NewSet(false, v1("container.id", "another's"), v1("process_owner", "root"), v1("k8s.pod.uid", "another's"), v1("container.name", "mine"))
	attrs, _, stats := named(t, "", set, map[string]any{})
	require.Equal(t, map[string]any{
		"process.context.label.container.id": "another's", "process.context.label.process_owner": "root",
		"process.context.label.k8s.pod.uid": "another's", "container.name": "mine",
	}, attrs[0])
	require.EqualValues(t, 6, stats.RenamedKeys, "of two processes")
}
