//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	soakChurnRate  = 40 // processes a second
	soakLibraries  = 8  // that are loaded and unloaded again and again
	soakContainers = 2  // at a time
	containerLives = 1  // seconds of each
	containerPause = 3 * time.Second
)

// startSoakLoad starts everything that comes and goes; it ends with the test.
func startSoakLoad(t *testing.T) {
	t.Helper()
	dir := testutil.BuildWriters(t)
	var loads sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop()
		loads.Wait()
	})
	repeat := func(one func(context.Context, int) error) {
		loads.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := one(ctx, n); err != nil && ctx.Err() == nil {
					t.Errorf("soak: %v", err)
					return
				}
			}
		})
	}
	repeat(func(ctx context.Context, _ int) error {
		return soakRun(ctx, filepath.Join(dir, "writer-v1-exe"), "churn", "--rate", fmt.Sprint(soakChurnRate), "--seconds", "30")
	})
	program := buildDlopen(t)
	libraries := copies(t, filepath.Join(dir, "libcustomlabels_v1.so"), soakLibraries)
	repeat(func(ctx context.Context, _ int) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		err := soakRun(ctx, program, append([]string{"20000"}, libraries...)...)
		if ctx.Err() != nil {
			return nil // it does not end by itself
		}
		return err
	})
	image := soakImage(t, dir)
	for i := range soakContainers {
		root := t.TempDir()
		repeat(func(ctx context.Context, n int) error {
			err := image.run(ctx, filepath.Join(root, fmt.Sprint(n)), i)
			select {
			case <-time.After(containerPause):
			case <-ctx.Done():
			}
			return err
		})
	}
}

// soakRun runs a program to its end, or that of the context.
func soakRun(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = 10 * time.Second // its last children have its output, too
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, out)
	}
	return nil
}

func buildDlopen(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dlopen")
	out, err := exec.Command("gcc", "-O1", "-pthread", "-o", program, "soak/dlopen.c", "-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// copies makes files of a file, each an object of its own for the dynamic loader.
func copies(t *testing.T, of string, n int) []string {
	t.Helper()
	data, err := os.ReadFile(of)
	require.NoError(t, err)
	dir := t.TempDir()
	var names []string
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("%s.%d", filepath.Base(of), i))
		require.NoError(t, os.WriteFile(name, data, 0o755))
		names = append(names, name)
	}
	return names
}

// A containerImage is a directory that containers have as the lower layer of their root.
type containerImage struct{ layer, empty string }

func soakImage(t *testing.T, dir string) *containerImage {
	t.Helper()
	image := &containerImage{t.TempDir(), t.TempDir()}
	for _, name := range []string{"writer-v1-lib", "libcustomlabels_v1.so"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(image.layer, name), data, 0o755))
	}
	return image
}

// run mounts the image, lets a program of it live in namespaces of its own, and unmounts it.
func (c *containerImage) run(ctx context.Context, root string, index int) error {
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	options := "lowerdir=" + c.layer + ":" + c.empty
	if err := unix.Mount("overlay", root, "overlay", unix.MS_RDONLY, options); err != nil {
		return fmt.Errorf("mount the image: %w", err)
	}
	err := soakRun(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		filepath.Join(root, "writer-v1-lib"), "spin", "--labels", fmt.Sprint(1+index), "--seconds", fmt.Sprint(containerLives))
	if e := unix.Unmount(root, unix.MNT_DETACH); e != nil && err == nil {
		err = fmt.Errorf("unmount the image: %w", e)
	}
	if e := os.Remove(root); e != nil && err == nil {
		err = e
	}
	return err
}

// soakSeen is what the next consumer got.
type soakSeen struct {
	mu       sync.Mutex
	samples  int
	pids     map[int64]bool  // of this round
	labelled map[string]bool // kinds of load with labels
	dlopen   bool
}

func (s *soakSeen) visit(b flatBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pids == nil {
		s.pids = map[int64]bool{}
	}
	s.samples += len(b.hits)
	for i := range b.hits {
		h := &b.hits[i]
		s.pids[h.pid] = true
		switch {
		case h.attrs[prefix+"life"] != "":
			s.labelled["churn"] = true
		case h.attrs[prefix+"label_00"] != "" && strings.HasSuffix(h.executable, "writer-v1-lib"):
			s.labelled["containers"] = true
		case h.executable == "dlopen":
			s.dlopen = true
		}
	}
}

// take returns the samples since the last time.
func (s *soakSeen) take() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.samples
	s.samples = 0
	return n
}

// processes returns how many processes they were of.
func (s *soakSeen) processes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.pids)
	s.pids = nil
	return n
}

// requireAll: each load was there.
func (s *soakSeen) requireAll(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.True(t, s.labelled["churn"], "no label of churning processes")
	require.True(t, s.labelled["containers"], "no label of containers")
	require.True(t, s.dlopen, "no sample of the program that loads libraries")
}
