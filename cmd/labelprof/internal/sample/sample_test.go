// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLookup: no label passes for what the kernel says, or for the link.
func TestLookup(t *testing.T) {
	resource := &Process{Attributes: []Attribute{
		{Key: KeyPID, Text: "7"}, {Key: KeyProcessName, Text: "evil"}, {Key: "process.executable.path", Text: "/bin/evil"},
		{Key: "process.real_user.id", Text: "1000"}, {Key: "container.id", Text: "attacker"}, {Key: "k8s.pod.uid", Text: "attacker"}, {Key: "service.name", Text: "shop"}, {Key: "host.name", Text: "h"},
	}}
	labels := func(pairs ...string) (a []Attribute) {
		for i := 0; i < len(pairs); i += 2 {
			a = append(a, Attribute{Key: pairs[i], Text: pairs[i+1]})
		}
		return a
	}
	for name, tc := range map[string]struct {
		s         Sample
		key, want string
		absent    bool
	}{
		"PID":              {s: Sample{Process: resource, Attributes: labels(KeyPID, "4242")}, key: KeyPID, want: "7"},
		"prefixed PID":     {s: Sample{Process: resource, Attributes: labels(LabelPrefix+KeyPID, "4242")}, key: KeyPID, want: "7"},
		"the label itself": {s: Sample{Process: resource, Attributes: labels(LabelPrefix+KeyPID, "4242")}, key: LabelPrefix + KeyPID, want: "4242"},
		"executable":       {s: Sample{Process: resource, Attributes: labels(KeyProcessName, "postgres")}, key: KeyProcessName, want: "evil"},
		"path":             {s: Sample{Process: resource, Attributes: labels("process.executable.path", "/bin/x")}, key: "process.executable.path", want: "/bin/evil"},
		"user":             {s: Sample{Process: resource, Attributes: labels("process.real_user.id", "0")}, key: "process.real_user.id", want: "1000"},
		"pod":              {s: Sample{Process: resource, Attributes: labels(LabelPrefix+"k8s.pod.uid", "victim")}, key: "k8s.pod.uid", want: "attacker"},
		"container":        {s: Sample{Process: resource, Attributes: labels(LabelPrefix+"container.id", "victim")}, key: "container.id", want: "attacker"},
		"PID of pprof":     {s: Sample{Process: &Process{}, Attributes: labels(KeyPID, "7", LabelPrefix+KeyPID, "4242")}, key: KeyPID, want: "7"},
		"another resource": {s: Sample{Process: resource, Attributes: labels("host.name", "mine")}, key: "host.name", want: "mine"},
		"service":          {s: Sample{Process: resource, Attributes: labels("service.name", "mine")}, key: "service.name", want: "mine"},
		"resource alone":   {s: Sample{Process: resource}, key: "service.name", want: "shop"},
		"bare label first": {s: Sample{Process: resource, Attributes: labels(LabelPrefix+"tenant", "b", "tenant", "a")}, key: "tenant", want: "a"},
		"prefixed label":   {s: Sample{Process: resource, Attributes: labels(LabelPrefix+"tenant", "b")}, key: "tenant", want: "b"},
		"no label":         {s: Sample{Process: resource}, key: "tenant", absent: true},
		"link":             {s: Sample{Process: resource, TraceID: "0a", SpanID: "0b"}, key: KeyTraceID, want: "0a"},
		"span":             {s: Sample{Process: resource, TraceID: "0a", SpanID: "0b"}, key: KeySpanID, want: "0b"},
		"link and label":   {s: Sample{Process: resource, TraceID: "0a", Attributes: labels(LabelPrefix+KeyTraceID, "mine")}, key: KeyTraceID, want: "0a"},
		"no link":          {s: Sample{Process: resource, Attributes: labels(KeySpanID, "mine")}, key: KeySpanID, want: "mine"},
		"neither":          {s: Sample{Process: resource}, key: KeyTraceID, absent: true},
	} {
		got, ok := tc.s.Lookup(tc.key)
		require.Equal(t, tc.want, got, name)
		require.Equal(t, !tc.absent, ok, name)
	}
}

// TestTop: off the CPU, what is the kernel's is told by the type, or else by the mapping.
func TestTop(t *testing.T) {
	for file, kernel := range map[string]bool{
		"[kernel.kallsyms]": true, "[kernel]": true, "[ext4]": true, "[bpf]": true,
		"[vdso]": false, "[vsyscall]": false, "[uprobes]": false, "[heap]": false, "[stack]": false, "[stack:12]": false,
		"[anon]": false, "[anon:v8]": false, "[anon_shmem:a:b]": false, "/bin/program": false, "": false,
	} {
		for _, typed := range []struct {
			name   string
			kernel bool
		}{{"", kernel}, {"kernel", true}, {"native", false}} {
			first, second := &Location{Type: typed.name, Mapping: Mapping{File: file}}, &Location{Mapping: Mapping{File: "/bin/program"}}
			s := Sample{Kind: OffCPU, Stack: []*Location{first, second}}
			require.Equal(t, typed.kernel, s.Top() == second, "%q of type %q", file, typed.name)
			s.Kind = OnCPU
			require.Same(t, first, s.Top(), "on the CPU the kernel counts as well")
		}
	}
	only := &Location{Type: "kernel"}
	require.Same(t, only, (&Sample{Kind: OffCPU, Stack: []*Location{only}}).Top())
	require.Nil(t, (&Sample{Kind: OffCPU}).Top())
}
