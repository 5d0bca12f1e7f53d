package targets

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func uid(n uint32) *uint32 { return &n }

func postgres() *Process {
	return &Process{
		PID: 1234, UID: 26, Executable: "/usr/lib/postgresql/16/bin/postgres",
		Cgroup: "/system.slice/postgresql.service", CgroupID: 77, ContainerID: "abc123",
	}
}

func TestSelector(t *testing.T) {
	for name, tc := range map[string]struct {
		selector Selector
		want     bool
	}{
		"executable":                   {Selector{Executable: "/usr/lib/postgresql/16/bin/postgres"}, true},
		"executable, part":             {Selector{Executable: "/usr/lib/postgresql"}, false},
		"** crosses slashes":           {Selector{Executable: "/usr/lib/postgresql/**"}, true},
		"** in the middle":             {Selector{Executable: "/usr/**/postgres"}, true},
		"* does not cross slashes":     {Selector{Executable: "/usr/lib/postgresql/*"}, false},
		"* in a part":                  {Selector{Executable: "/usr/lib/postgresql/1?/bin/post*"}, true},
		"alternatives":                 {Selector{Executable: "/usr/lib/{mysql,postgresql}/**"}, true},
		"by name":                      {Selector{Executable: "**/postgres"}, true},
		"by another name":              {Selector{Executable: "**/post"}, false},
		"cgroup":                       {Selector{Cgroup: "/system.slice/*.service"}, true},
		"another cgroup":               {Selector{Cgroup: "/user.slice/**"}, false},
		"cgroup id":                    {Selector{CgroupID: 77}, true},
		"another cgroup id":            {Selector{CgroupID: 78}, false},
		"container":                    {Selector{ContainerID: "abc*"}, true},
		"another container":            {Selector{ContainerID: "abd*"}, false},
		"uid":                          {Selector{UID: uid(26)}, true},
		"another uid":                  {Selector{UID: uid(0)}, false},
		"pid":                          {Selector{PID: 1234}, true},
		"another pid":                  {Selector{PID: 12}, false},
		"two fields":                   {Selector{UID: uid(26), PID: 1234}, true},
		"two fields, one of which not": {Selector{UID: uid(26), PID: 1}, false},
		"all fields": {Selector{
			Executable: "/usr/**", Cgroup: "/**", ContainerID: "*", CgroupID: 77, PID: 1234, UID: uid(26),
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, tc.selector.Validate())
			require.Equal(t, tc.want, tc.selector.Matches(postgres()))
		})
	}
}

// The services of the system, as docs/configuration.md leaves them out, are no containers.
func TestServicesWithoutContainers(t *testing.T) {
	services := Selector{Cgroup: "**/system.slice/{*.service,*.slice/*.service}/**"}
	require.NoError(t, services.Validate())
	for path, want := range map[string]bool{
		"/system.slice/nginx.service":                                      true,
		"/../../system.slice/nginx.service":                                true,
		"/../nginx.service":                                                false, // from system.slice
		"/system.slice/cron.service/sub/group":                             true,
		"/system.slice/system-postgresql.slice/postgresql@15-main.service": true,
		"/system.slice/docker-0123456789abcdef.scope":                      false,
		"/kubepods.slice/kubepods-pod0.slice/cri-containerd-0123.scope":    false,
		"/system.slice/docker-0123456789abcdef.scope/init.scope":           false,
	} {
		require.Equal(t, want, services.Matches(&Process{Cgroup: path}), path)
	}
}

func TestOfWholeHierarchy(t *testing.T) {
	const here, fromContainer = "/system.slice/nginx.service", "/../../system.slice/nginx.service"
	for glob, want := range map[string]bool{
		here: true, "/system.slice/**": true, "{/system.slice/**,/init.scope}": true, "/*/nginx.service": true,
		"**/system.slice/**": false, "/**/nginx.service": false, "{**/system.slice/**,/init.scope}": false,
	} {
		s := Selector{Cgroup: glob}
		require.NoError(t, s.Validate())
		require.Equal(t, want, s.OfWholeHierarchy(), glob)
		require.True(t, s.Matches(&Process{Cgroup: here}), glob)
		require.Equal(t, !want, s.Matches(&Process{Cgroup: fromContainer}), glob)
	}
	of := func(s Selector) bool { return s.OfWholeHierarchy() }
	require.True(t, of(Selector{CgroupID: 1}))
	require.True(t, of(Selector{CgroupID: 1, Cgroup: "**"}))
	require.False(t, of(Selector{Cgroup: "/../../system.slice/**"}))
	require.False(t, of(Selector{Executable: "/**", PID: 1}))
}

// From a container in system.slice, its service nginx is /../nginx.service.
func TestNamesAncestors(t *testing.T) {
	for glob, want := range map[string]bool{
		"**/system.slice/**": true, "**/system.slice/nginx.service": true, "/**/system.slice/nginx.service/**": true,
		"{**/system.slice/**,**/x}": true,
		"**/nginx.service":          false, "**/nginx.service/**": false, "**": false,
		"**/{nginx.service,cron.service}/**": false, "{**/nginx.service,**/cron.service/**}": false,
		"**/{nginx.service,system.slice}/**": true,
	} {
		s := Selector{Cgroup: glob}
		require.NoError(t, s.Validate())
		require.Equal(t, want, s.NamesAncestors(), glob)
		if !want {
			require.True(t, s.Matches(&Process{Cgroup: "/../nginx.service"}), glob)
		}
	}
	for _, glob := range []string{"/system.slice/nginx.service", "/../nginx.service/**", ""} { // no part of any path
		require.False(t, (&Selector{Cgroup: glob}).NamesAncestors(), glob)
	}
}

// What is not known matches nothing, not even a glob that matches all.
func TestSelectorUnknown(t *testing.T) {
	for _, s := range []Selector{{Executable: "/**"}, {Executable: "**"}, {Cgroup: "/**"}, {ContainerID: "*"}, {ContainerID: "**"}, {CgroupID: 1}} {
		require.False(t, s.Matches(&Process{PID: 1}), "%+v", s)
	}
	root := Selector{UID: uid(0)}
	require.True(t, root.Matches(&Process{}))
	require.False(t, root.Matches(&Process{Kernel: true}), "a kernel thread is of no user")
}

func TestSelection(t *testing.T) {
	match, other := Selector{UID: uid(26)}, Selector{UID: uid(27)}
	for name, tc := range map[string]struct {
		selection Selection
		want      bool
	}{
		"empty":             {Selection{}, true},
		"included":          {Selection{Include: []Selector{match}}, true},
		"any is enough":     {Selection{Include: []Selector{other, match}}, true},
		"not included":      {Selection{Include: []Selector{other}}, false},
		"excluded":          {Selection{Exclude: []Selector{other, match}}, false},
		"not excluded":      {Selection{Exclude: []Selector{other}}, true},
		"exclude wins":      {Selection{Include: []Selector{match}, Exclude: []Selector{match}}, false},
		"neither":           {Selection{Include: []Selector{other}, Exclude: []Selector{other}}, false},
		"include, not excl": {Selection{Include: []Selector{match}, Exclude: []Selector{other}}, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, tc.selection.Wants(postgres())) })
	}
	require.False(t, (&Selection{Include: []Selector{match}}).ByPID())
	require.True(t, (&Selection{Exclude: []Selector{other, {PID: 1}}}).ByPID())
	require.False(t, (&Selection{Exclude: []Selector{{PID: 1}}}).ByCgroupID())
	require.True(t, (&Selection{Include: []Selector{{CgroupID: 1}}}).ByCgroupID())
}

func TestSelectorValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		selector Selector
		want     string
	}{
		"empty":        {Selector{}, "at least one of executable, cgroup, cgroup_id, container_id, uid and pid"},
		"executable":   {Selector{Executable: "/usr/["}, `executable is not a valid glob: "/usr/["`},
		"cgroup":       {Selector{Cgroup: "/{a"}, `cgroup is not a valid glob: "/{a"`},
		"container id": {Selector{ContainerID: "a\\"}, `container_id is not a valid glob: "a\\"`},
		"long":         {Selector{ContainerID: strings.Repeat("a", MaxGlobBytes+1)}, "container_id must have at most 1024 bytes, not 1025"},
		"relative":     {Selector{Executable: "postgres"}, `executable must begin with / or **/, not "postgres"`},
		"service":      {Selector{Cgroup: "nginx.service"}, `cgroup must begin with / or **/, not "nginx.service"`},
		"runtime":      {Selector{ContainerID: "docker://abc"}, `container_id must be the id alone, "abc", not "docker://abc"`},
		"path":         {Selector{ContainerID: "/docker/abc"}, `container_id must be the id alone, without /, not "/docker/abc"`},
		"short":        {Selector{ContainerID: "4F5e6a7b8c9d"}, `container_id must be a whole id, 64 hexadecimal digits in lower case, or a glob, such as "4f5e6a7b8c9d*", not "4F5e6a7b8c9d"`},
		"upper case":   {Selector{ContainerID: strings.Repeat("A", 64)}, "in lower case"},
		"no digit":     {Selector{ContainerID: "docker-4f*"}, `container_id must match ids, which have only hexadecimal digits in lower case, not "docker-4f*"`},
		"upper glob":   {Selector{ContainerID: "4F*"}, `in lower case, not "4F*"`},
		"alternative":  {Selector{ContainerID: "{4f*,x*}"}, "only hexadecimal digits"},
		"comma":        {Selector{ContainerID: "4f*,5e*"}, "only hexadecimal digits"},
		"escaped":      {Selector{ContainerID: `4f\**`}, "only hexadecimal digits"},
		"short glob":   {Selector{ContainerID: "4f?"}, `container_id must match ids of 64 digits, with * for those that are left out, not "4f?"`},
		"folder":       {Selector{Executable: "/opt/app/"}, `executable must not end with /, as no path does: "/opt/app/"`},
		"cgroup/":      {Selector{Cgroup: "/a/**/"}, `cgroup must not end with /`},
		"long path":    {Selector{Executable: "/" + strings.Repeat("a", MaxGlobBytes)}, "executable must have at most 1024 bytes, not 1025"},
		"pid":          {Selector{PID: -1}, "pid must be positive, not -1"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, tc.selector.Validate(), tc.want) })
	}
	// ** is as * but where it is a whole part of a path.
	for glob, wrong := range map[string]string{
		"**shop": "**shop", "**.service": "**.service", "*/shop": "*/shop", "{postgres,mysqld}": "postgres",
		"{/a,b}": "b", "{/a,{/b,c}d}/e": "cd/e", "{,/usr}bin/sh": "bin/sh", "{[,]/x,/y}": "[,]/x", "{**}x": "**x", `\/a`: `\/a`,
		strings.Repeat("{,}", 300) + "x": "x",
	} {
		s := Selector{Executable: glob}
		require.ErrorContains(t, s.Validate(), fmt.Sprintf("executable must begin with / or **/, not %q", wrong))
	}
	for _, glob := range []string{"/opt/**.bin", "/opt/a**", "/a/***", "/a/**b/c", "/a/{b**,c}", "**/a**", "/opt/a,**", "/opt/**,a"} {
		s := Selector{Executable: glob}
		require.ErrorContains(t, s.Validate(), fmt.Sprintf("executable must have ** as a whole part of a path only, as in /opt/**/bin, not %q", glob))
	}
	for _, glob := range []string{`/a\**`, "/[**]a", "{/opt/,/srv/}**", "/opt/{x,**}", "/a/**/b", "/{**,a}", "/{a,**}/b", "/a", "**", "**/x", "{/a/**,**/b}", "{,/usr}/bin/sh", "{{/a,/b},**}/c", "{/[}]x,/y}", strings.Repeat("{,}", 300) + "/x"} {
		s := Selector{Cgroup: glob}
		require.NoError(t, s.Validate(), glob)
	}
	for _, id := range []string{
		strings.Repeat("4f", 32), "4f*", "[4]f*", "[!a-f]*", "{4f,5e}*", "{4f*,5e}", "{{4f,a}*,5e}", "*", "**",
		strings.Repeat("?", 64), strings.Repeat("{4,a}", 64), strings.Repeat("4f", 31) + "{a,ab,abc}", strings.Repeat("4f", 32) + "*",
	} {
		s := Selector{ContainerID: id}
		require.NoError(t, s.Validate(), id)
	}
	for _, path := range []string{"/opt/app/**", "/opt/app", "/"} {
		s := Selector{Cgroup: path}
		require.NoError(t, s.Validate(), path)
	}
}
