//go:build linux

package process

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

func TestInspectExecutable(t *testing.T) {
	source := "#include <stdint.h>\n" + target.DefineV1 + definer
	path := compile(t, "p", source, "-rdynamic", "-DVARIABLE="+record.ABIV1.Symbol())
	p := start(t, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	before := openFiles(t)

	info, err := Inspect(t.Context(), procfs.FS{}, p.PID)
	require.NoError(t, err)
	require.True(t, info.Loaded)
	require.Equal(t, path, info.Path)
	require.Equal(t, p.PID, info.PID)
	require.NotNil(t, info.Mappings)
	require.Len(t, info.Sources, 1)
	s := info.Sources[0]
	require.Equal(t, labelsource.Active, s.State, s.Err)
	require.Equal(t, "local-exec", s.Model)
	requireSource(t, p, []record.LabelSource{s.Source()}, record.ABIV1, tp, variable)

	file, size, err := info.Mappings[0].File.Open()
	require.NoError(t, err)
	require.Positive(t, size)
	file.Close()
	require.Equal(t, before, openFiles(t), "no descriptor is kept")
}

// A slot that the loader has relocated is believed at the second look only.
func TestInspectSettles(t *testing.T) {
	lib := target.Library(t, target.DefineV1, record.ABIV1.Symbol())
	p := start(t, compile(t, "p", target.Common+`
		int main(int argc, char **argv) {
			void *(*where)(void) = (void *(*)(void))dlsym(dlopen(argv[1], RTLD_NOW), "where");
			say(where()); await(); return 0;
		}`), lib)
	var tp, variable uint64
	p.Line(&tp, &variable)
	info, err := Inspect(t.Context(), procfs.FS{}, p.PID)
	require.NoError(t, err)
	require.Len(t, info.Sources, 1)
	s := info.Sources[0]
	require.Equal(t, labelsource.Active, s.State, s.Err)
	require.Equal(t, lib, s.Path)
	requireSource(t, p, []record.LabelSource{s.Source()}, record.ABIV1, tp, variable)
}

// A slot that never gets relocated costs no more than the bound.
func TestInspectEnds(t *testing.T) {
	lib := target.Library(t, target.DefineV1, record.ABIV1.Symbol(), "-Wl,-z,noseparate-code")
	// Mapped the way a loader would, and left at that.
	p := start(t, compile(t, "p", target.Common+`
		#include <fcntl.h>
		int main(int argc, char **argv) {
			int fd = open(argv[1], O_RDONLY);
			mmap(0, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
			say(argv); await(); return 0;
		}`), lib)
	var a, b uint64
	p.Line(&a, &b)
	began := time.Now()
	info, err := Inspect(t.Context(), procfs.FS{}, p.PID)
	require.NoError(t, err)
	require.Greater(t, time.Since(began), maxInspectDuration/2, "it tries again")
	require.Len(t, info.Sources, 1)
	require.Equal(t, labelsource.NotRelocated, info.Sources[0].State)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Inspect(ctx, procfs.FS{}, p.PID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestInspectThread(t *testing.T) {
	p := start(t, compile(t, "p", target.Common+`
		#include <sys/syscall.h>
		static void *other(void *x) { printf("%ld 0\n", syscall(SYS_gettid)); fflush(stdout); pause(); return x; }
		int main(void) { pthread_t t; pthread_create(&t, 0, other, 0); await(); return 0; }`, "-pthread"))
	var tid, zero int
	p.Line(&tid, &zero)
	require.NotEqual(t, p.PID, tid)
	info, err := Inspect(t.Context(), procfs.FS{}, tid)
	require.NoError(t, err)
	require.Equal(t, p.PID, info.PID)
}

func TestInspectRefuses(t *testing.T) {
	path := compile(t, "p", target.Common+`int main(void) { printf("1\n"); fflush(stdout); await(); return 0; }`)
	p := start(t, path)
	var one int
	p.Line(&one)
	require.NoError(t, p.Cmd.Process.Kill())
	eventually(t, "a zombie", func() bool {
		st, err := procfs.FS{}.Stat(p.PID)
		return err == nil && st.Dead()
	})
	_, err := Inspect(t.Context(), procfs.FS{}, p.PID)
	require.ErrorIs(t, err, procfs.ErrNoProcess)
	require.ErrorContains(t, err, fmt.Sprintf("inspect process %d", p.PID))
	p.Stop()
	_, err = Inspect(t.Context(), procfs.FS{}, p.PID)
	require.ErrorIs(t, err, procfs.ErrNoProcess)

	id := procfs.FileID{Inode: 1}
	info := &Info{Loaded: true, Mappings: []executable.Mapping{{}}}
	for want, machine := range map[error]elf.Machine{
		nil:             labelsource.HostMachine(),
		ErrArchitecture: elf.EM_PPC64,
	} {
		info.Mappings[0].File = executable.NewFile(id, "", executable.Facts{Layout: executable.Layout{Machine: machine}}, nil)
		require.ErrorIs(t, readable(info, id), want)
	}
	info.Mappings[0].File = executable.NewFile(id, "", executable.Facts{}, fmt.Errorf("class: %w", elffile.ErrUnsupported))
	require.ErrorIs(t, readable(info, id), ErrArchitecture)
	require.NoError(t, readable(info, procfs.FileID{Inode: 2}), "a file that it maps, not what it runs")
}

func TestInspectKernelThread(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "2"), 0o755))
	for name, text := range map[string]string{
		"stat":   "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0 0 0 0 0\n",
		"status": "Tgid:\t2\nUid:\t0\t0\t0\t0\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "2", name), []byte(text), 0o644))
	}
	_, err := Inspect(t.Context(), procfs.FS{Root: root}, 2)
	require.ErrorIs(t, err, ErrKernelThread)
}

// nobody may read its own processes and no others.
func TestInspectPermission(t *testing.T) {
	testutil.RequireRoot(t)
	const nobody = 65534
	source := "#include <stdint.h>\n" + target.DefineV1 + definer
	path := compile(t, "p", source, "-rdynamic", "-DVARIABLE="+record.ABIV1.Symbol())
	for dir := filepath.Dir(path); dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	var tp, variable uint64
	roots := start(t, path)
	roots.Line(&tp, &variable)
	var info *Info
	var err error
	asUser(nobody, func() { _, err = Inspect(t.Context(), procfs.FS{}, roots.PID) })
	require.ErrorIs(t, err, ErrPermission)
	require.ErrorContains(t, err, "CAP_SYS_PTRACE")

	own := startAs(t, nobody, path)
	own.Line(&tp, &variable)
	asUser(nobody, func() { info, err = Inspect(t.Context(), procfs.FS{}, own.PID) })
	require.NoError(t, err)
	require.Equal(t, labelsource.Active, info.Sources[0].State)
}

// asUser runs f as another user without capabilities: system calls, unlike the
// functions of package syscall, change one thread only, which ends with f.
func asUser(uid int, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked
		if unix.Gettid() == unix.Getpid() {
			// The main thread would not end, and it is the one that /proc/self tells of.
			asUser(uid, f)
			runtime.UnlockOSThread()
			return
		}
		if _, _, err := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); err != 0 {
			panic(err)
		}
		f()
	}()
	<-done
}

// startAs starts a definer as another user.
func startAs(t *testing.T, uid uint32, path string) *program {
	t.Helper()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid}} // the group, too, has to be the reader's
	return &program{target.StartCmd(t, cmd)}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(names)
}
