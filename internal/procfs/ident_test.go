package procfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseContainerID(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	other := strings.Repeat("fedcba9876543210", 4)
	for name, tc := range map[string]struct{ cgroup, want string }{
		"docker v1":            {"12:cpu,cpuacct:/docker/" + id + "\n0::/\n", id},
		"docker systemd":       {"0::/system.slice/docker-" + id + ".scope\n", id},
		"containerd kubelet":   {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b.slice/cri-containerd-" + id + ".scope\n", id},
		"containerd colon":     {"0::/system.slice/kubepods-pod0a1b.slice:cri-containerd:" + id, id},
		"kubelet cgroupfs":     {"0::/kubepods/besteffort/pod0a1b-22/" + id, id},
		"crio":                 {"0::/kubepods.slice/crio-" + id + ".scope", id},
		"crio monitor":         {"0::/kubepods.slice/crio-conmon-" + id + ".scope", ""},
		"podman":               {"0::/machine.slice/libpod-" + id + ".scope/container", id},
		"podman monitor":       {"0::/machine.slice/libpod-conmon-" + id + ".scope", ""},
		"unit in container":    {"0::/docker/" + id + "/system.slice/cron.service", id},
		"container in another": {"0::/docker/" + other + "/kubelet/pod1/" + id, id},
		"own cgroup namespace": {"0::/../cri-containerd-" + id + ".scope", id},
		"host":                 {"0::/user.slice/user-1000.slice/session-1.scope", ""},
		"too long":             {"0::/docker/" + id + "0", ""},
		"upper case":           {"0::/docker/" + strings.ToUpper(id), ""},
		"no colons":            {"/docker/" + id, ""},
		"empty":                {"", ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, parseContainerID(tc.cgroup)) })
	}
}

func TestParsePodUID(t *testing.T) {
	const uid, under = "8c7f3ba2-7d06-4a0e-a7c2-1d1d2a2a2a2a", "8c7f3ba2_7d06_4a0e_a7c2_1d1d2a2a2a2a"
	id, other := strings.Repeat("0123456789abcdef", 4), strings.ReplaceAll(uid, "8", "9")
	for name, tc := range map[string]struct{ cgroup, want string }{
		"systemd":              {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice/cri-containerd-" + id + ".scope\n", uid},
		"systemd, guaranteed":  {"0::/kubepods.slice/kubepods-pod" + under + ".slice/crio-" + id + ".scope\n", uid},
		"colon":                {"0::/system.slice/kubepods-besteffort-pod" + under + ".slice:cri-containerd:" + id, uid},
		"cgroupfs":             {"0::/kubepods/besteffort/pod" + uid + "/" + id, uid},
		"cgroupfs v1":          {"9:cpu:/\n4:memory:/kubepods/pod" + uid + "/" + id + "\n0::/system.slice/containerd.service\n", uid},
		"from another pod":     {"0::/../../kubepods-burstable-pod" + under + ".slice/cri-containerd-" + id + ".scope", uid},
		"from a pod, cgroupfs": {"0::/../../../besteffort/pod" + uid + "/" + id, uid},
		"from one, guaranteed": {"0::/../pod" + uid + "/" + id, uid},
		"from one, nobody's":   {"0::/../../user.slice/pod" + uid + "/" + id, ""},
		"kind":                 {"0::/docker/" + id + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + under + ".slice/cri-containerd-" + id + ".scope", uid},
		"a container in a pod": {"0::/kubepods/pod" + uid + "/" + id + "/docker/" + id, uid},
		"a pod in a pod":       {"0::/kubepods/pod" + uid + "/" + id + "/kubepods/pod" + other + "/" + id, uid},
		"static pod":           {"0::/kubepods/burstable/pod8c7f3ba27d064a0ea7c21d1d2a2a2a2a/" + id, ""},
		"no pods' group":       {"0::/user.slice/pod" + uid + "/" + id, ""},
		"no hexadecimal":       {"0::/kubepods/podg" + uid[1:], ""},
		"no separators":        {"0::/kubepods/pod" + strings.ReplaceAll(uid, "-", "0"), ""},
		"too long":             {"0::/kubepods/pod" + uid + "0", ""},
		"docker":               {"0::/docker/" + id, ""},
		"empty":                {"", ""},
	} {
		require.Equal(t, tc.want, parseCgroup(tc.cgroup).PodUID, name)
	}
}

func TestParseCgroupPath(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/nginx.service\n":              "/system.slice/nginx.service",
		"12:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n": "/c",
		"0::/":                   "/",
		"0::/../other\n":         "/../other",
		"0::/user.slice/a b:c\n": "/user.slice/a b:c",
		"0::/gone (deleted)\n":   "/gone",
		"12:cpu:/only/v1\n":      "",
		"0::relative\n":          "",
		"10::/not/zero\n":        "",
		"":                       "",
	} {
		require.Equal(t, want, parseCgroupPath(text), "%q", text)
	}
}

// With the host's PIDs, the first process tells a container's cgroup namespace.
func TestPrivateCgroups(t *testing.T) {
	for text, want := range map[string]bool{
		"0::/../../init.scope\n":       true,
		"0::/../..\n":                  true,
		"1:name=systemd:/\n0::/..\n":   true,
		"0::/init.scope\n":             false,
		"0::/\n":                       false,
		"0::/..\n1:name=systemd:/\n":   true,
		"1:name=systemd:/../../init\n": false,
		"":                             false,
	} {
		root := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(root, "1"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, "1", "cgroup"), []byte(text), 0o600))
		require.Equal(t, want, FS{Root: root}.PrivateCgroups(), text)
	}
	require.False(t, FS{Root: t.TempDir()}.PrivateCgroups(), "cannot be read")
}

func TestOnlyRoots(t *testing.T) {
	for text, want := range map[string]bool{
		"1:name=systemd:/\n0::/kubepods/a\n":  true,
		"1:name=systemd:/..\n0::/../a\n":      true,
		"4:memory:/../..\n1:name=systemd:/\n": true,
		"4:memory:/a\n1:name=systemd:/\n":     false,
		"0::/\n":                              false,
		"":                                    false,
	} {
		require.Equal(t, want, onlyRoots(text), text)
	}
}

// What cgroup v1 says of a thread that exits is no word about its process; of others it is.
func TestCgroupOfExiting(t *testing.T) {
	root := t.TempDir()
	task := func(dir, flags, group string) {
		dir = filepath.Join(root, dir)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		stat := "7 (x) S 1 1 1 0 -1 " + flags + " 0 0 0 0 0 0 0 0 20 0 1 0 5 4096 1 0 0 0 0\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup"), []byte("1:name=systemd:"+group+"\n0::/a\n"), 0o600))
	}
	const exits, lives = "4", "0"
	id := strings.Repeat("c0ffee42", 8)
	f := FS{Root: root}
	task("7", lives, "/")
	group, err := f.Cgroup(7)
	require.NoError(t, err)
	require.Equal(t, Cgroup{Path: "/a"}, group)

	task("7", exits, "/")
	task("7/task/7", exits, "/")
	_, err = f.Cgroup(7)
	require.ErrorIs(t, err, ErrNoProcess, "all threads exit")
	_, err = f.LiveThread(7)
	require.ErrorIs(t, err, ErrNoProcess)

	task("7/task/8", lives, "/docker/"+id)
	task("8", lives, "/docker/"+id)
	group, err = f.Cgroup(7)
	require.NoError(t, err)
	require.Equal(t, Cgroup{Path: "/a", ContainerID: id}, group)

	task("8", exits, "/")
	_, err = f.Cgroup(7)
	require.ErrorIs(t, err, ErrNoProcess, "that one has begun to exit meanwhile")
}

// A hierarchy of v1 for something else than what services and containers are made of says nothing.
func TestCgroup1(t *testing.T) {
	for text, want := range map[string]bool{
		"0::/init.scope\n":              false,
		"":                              false,
		"1:net_cls:/\n0::/init.scope\n": false,
		"1:name=systemd:/init.scope\n0::/init.scope\n":                true,
		"12:cpu,cpuacct:/\n11:memory:/\n1:name=systemd:/init.scope\n": true,
		"4:net_cls,memory:/\n":                                        true,
	} {
		root := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(root, "1"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, "1", "cgroup"), []byte(text), 0o600))
		require.Equal(t, want, FS{Root: root}.Cgroup1(), text)
	}
	require.False(t, FS{Root: t.TempDir()}.Cgroup1(), "cannot be read")
}

func TestCommandLine(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "7"), 0o755))
	for _, tc := range []struct {
		data  string
		limit int
		want  []string
		more  bool
	}{
		{"a\x00b c\x00\x00d\x00", 100, []string{"a", "b c", "", "d"}, false},
		{"title without end", 100, []string{"title without end"}, false},
		{"title\x00\x00\x00\x00\x00", 100, []string{"title"}, false},
		{"", 100, nil, false},
		{"\x00", 100, nil, false},
		{"abcdef\x00", 4, []string{"abcd"}, true},
		{"abcd", 4, []string{"abcd"}, false},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "7", "cmdline"), []byte(tc.data), 0o644))
		got, more, err := FS{Root: root}.CommandLine(7, tc.limit)
		require.NoError(t, err)
		require.Equal(t, tc.want, got, "%q", tc.data)
		require.Equal(t, tc.more, more, "%q", tc.data)
	}
	_, _, err := FS{Root: root}.CommandLine(8, 4)
	require.ErrorIs(t, err, ErrNoProcess)
}
