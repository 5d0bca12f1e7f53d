package profile

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// nameOf returns a name as it is emitted.
func (b *build) nameOf(name string) string {
	if b.opts.PrometheusNames {
		return labels.PrometheusName(name)
	}
	return name
}

// same returns what names are equal by.
func (b *build) same(name string) string {
	if b.opts.PrometheusNames {
		return labels.Undotted(name)
	}
	return name
}

// taken reports whether a label cannot have a name, because another attribute has it. Where those of a process and of
// its samples become one, a label also says nothing that is the kernel's to say, whether it says it or not: a backend
// would take it for the kernel's.
func (b *build) taken(name string) bool {
	name = b.same(name)
	return b.reserved[name] || b.ofResource[name] || b.opts.PrometheusNames && (b.added(name) || labels.OfKernel(name))
}

// added reports whether a name, without its dots, is one of an attribute that processors behind the receiver add to
// resources, in the configurations that we have: a backend would find two of that name.
func (b *build) added(name string) bool {
	switch name {
	case "host_name":
		return true
	case "service_name", "service_namespace", "service_version", "service_instance_id":
		return b.opts.ServiceAdded
	}
	return strings.HasPrefix(name, "k8s_") || strings.HasPrefix(name, "container_image_")
}

// passesForAdded reports whether an attribute of a resource has, or gets by its name, another spelling of one that
// processors add: beside what is spelled as they do, they add none. Of labels and annotations it cannot tell.
func (b *build) passesForAdded(key, name string) bool {
	if !b.added(labels.Undotted(name)) {
		return false
	}
	spelled := name
	for _, free := range []string{".label.", ".labels.", ".annotation.", ".annotations."} { // k8s.pod.labels.app_name
		spelled, _, _ = strings.Cut(spelled, free)
	}
	switch spelled {
	case "k8s.pod.start_time", "k8s.container.restart_count", "k8s.container.status.last_terminated_reason", "container.image.repo_digests":
		return false
	}
	return name != key || strings.Contains(spelled, "_")
}

// nameResource gives the attributes of a resource names that Prometheus takes, each once. Of several that become one,
// one that is written so stays, and one with dots before others; those that go are counted. Nothing stays below
// fallbackPrefix: labels that give way to the resource go there, and could go nowhere else.
func (b *build) nameResource(attrs pcommon.Map) {
	clear(b.ofResource)
	fallback := labels.Undotted(fallbackPrefix)
	var right, wrong []string
	for key := range attrs.All() {
		if labels.PrometheusName(key) == key {
			right = append(right, key)
		} else {
			wrong = append(wrong, key)
		}
	}
	slices.Sort(right) // dots first
	slices.Sort(wrong)
	for _, key := range append(right, wrong...) {
		name := labels.PrometheusName(key)
		same := labels.Undotted(name)
		if b.ofResource[same] || b.reserved[same] || b.passesForAdded(key, name) || strings.HasPrefix(same, fallback) {
			attrs.Remove(key)
			b.stats.DroppedLabels++
			continue
		}
		b.ofResource[same] = true
		if name == key {
			continue
		}
		copied := pcommon.NewValueEmpty()
		v, _ := attrs.Get(key)
		v.CopyTo(copied)
		attrs.Remove(key)
		copied.MoveTo(attrs.PutEmpty(name))
		b.stats.EscapedKeys++
	}
}
