//go:build linux

package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseOptions(t *testing.T) {
	o, err := parseOptions(strings.Fields(
		"-arch arm64 -kernel K -init I -add a:/b -add c:/d -env X=1 -- A=1 B= /x/one -v k=v --next two --next E=2 three"), io.Discard)
	require.NoError(t, err)
	require.Equal(t, []addition{{"a", "/b"}, {"c", "/d"}}, o.adds)
	require.Equal(t, list{"X=1"}, o.env)
	require.Equal(t, []command{
		{[]string{"A=1", "B="}, "/x/one", []string{"-v", "k=v"}},
		{[]string{}, "two", []string{}},
		{[]string{"E=2"}, "three", []string{}},
	}, o.commands)

	for args, want := range map[string]string{
		"-arch arm64 -kernel K -init I":                     "a program is missing",
		"-arch arm64 -kernel K -init I -- A=1":              "a program is missing",
		"-arch arm64 -kernel K -init I -- one --next":       "a program is missing",
		"-arch arm64 -kernel K -init I -- --next two":       "a program is missing",
		"-arch riscv64 -kernel K -init I -- one":            "unknown architecture",
		"-arch arm64 -init I -- one":                        "required",
		"-arch arm64 -kernel K -- one":                      "required",
		"-arch arm64 -kernel K -init I -add a -- one":       "want SRC:DST",
		"-arch arm64 -kernel K -init I -add :/b -- one":     "want SRC:DST",
		"-arch arm64 -kernel K -init I -timeout soon -- on": "invalid value",
		"-no-such-flag": "not defined",
	} {
		_, err := parseOptions(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
}

func TestRunRefuses(t *testing.T) {
	var stderr strings.Builder
	require.Equal(t, exitNoResult, run(nil, &stderr))
	require.Contains(t, stderr.String(), "vmrun: -kernel and -init are required")

	// Two programs of one name would be one file in the guest.
	stderr.Reset()
	require.Equal(t, exitNoResult, run(strings.Fields("-arch arm64 -kernel K -init I -- /a/x --next /b/x"), &stderr))
	require.Contains(t, stderr.String(), "would both be /bin/x")

	stderr.Reset()
	require.Equal(t, exitNoResult, run(strings.Fields("-arch arm64 -kernel K -init /no/such/init -- /no/such/program"), &stderr))
	require.Contains(t, stderr.String(), "no such file")
	require.Equal(t, 0, run([]string{"-h"}, &stderr))
}

func TestQemuCommand(t *testing.T) {
	m := &machine{options: &options{arch: "arm64", kernel: "K", cpus: 2, memoryMiB: 512}, work: "/w"}
	program, args := m.command()
	require.Equal(t, "qemu-system-aarch64", program)
	require.Subset(t, args, []string{"cortex-a72", "virt", "tcg", "512", "/w/initramfs"})
	require.Contains(t, strings.Join(args, " "), "kpti=off")
	require.NotContains(t, strings.Join(args, " "), "nvme")

	m.options = &options{arch: "amd64", cpu: "qemu64", out: "res", appended: "nokaslr", qemu: list{"-snapshot"}}
	program, args = m.command()
	require.Equal(t, "qemu-system-x86_64", program)
	require.Subset(t, args, []string{"qemu64", "nvme,drive=out,serial=out", "-snapshot"})
	require.Contains(t, strings.Join(args, " "), " nokaslr ")
}
