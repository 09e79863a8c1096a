// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// useModuleProxy configures the go command to use a proxy that serves only the modules of the checkout at root, at the
// given version.
func useModuleProxy(t *testing.T, version, root string) {
	t.Helper()
	proxy := t.TempDir()
	for module, dir := range map[string]string{coreModule: root, controlPlaneModule: filepath.Join(root, "controlplane")} {
		var archive bytes.Buffer
		w := zip.NewWriter(&archive)
		if err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if path != dir && moduleAt(path) != "" {
					return filepath.SkipDir
				}
				return nil
			}
			relative, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := w.Create(module + "@" + version + "/" + filepath.ToSlash(relative))
			if err != nil {
				return err
			}
			_, err = file.Write(content)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		writeFiles(t, proxy, map[string]string{
			module + "/@v/list":                 version + "\n",
			module + "/@v/" + version + ".info": `{"Version": "` + version + `"}`,
			module + "/@v/" + version + ".mod":  string(goMod),
			module + "/@v/" + version + ".zip":  archive.String(),
		})
	}
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOWORK", "off")
	t.Setenv("GOMODCACHE", filepath.Join(t.TempDir(), "modules"))
	t.Setenv("GOFLAGS", "-mod=mod -modcacherw")
}

func TestBuildFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"":                           "-buildvcs=false",
		"-cover -race -mod=vendor":   "-buildvcs=false",
		"--p=2 -gcflags=-N":          "-buildvcs=false --p=2",
		"-modcacherw  -tags=e2e -p4": "-buildvcs=false -modcacherw",
	} {
		if got := buildFlags(flags); got != want {
			t.Errorf("GOFLAGS=%q becomes %q, want %q", flags, got, want)
		}
	}
}

func TestBuildFromCheckoutOnce(t *testing.T) {
	cache := emptyCache(t)
	t.Chdir(filepath.Join(checkout(t), "sandbox"))
	var out syncBuffer
	o := &Options{Progress: &out}
	binary, err := findBinary(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if relative, err := filepath.Rel(cache, binary); err != nil || strings.HasPrefix(relative, "..") {
		t.Errorf("binary %s is not in the cache %s", binary, cache)
	}
	if output, err := exec.Command(binary).CombinedOutput(); err != nil || string(output) != "built\n" {
		t.Errorf("the binary printed %q, %v", output, err)
	}
	for _, want := range []string{
		`trueup: building the control plane from \S+controlplane; this can take minutes, but happens only once\n`,
		`trueup: compiling \d+ packages`,
		`trueup: linking the binary of \d+ packages`,
		`trueup: built ` + regexp.QuoteMeta(binary),
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("progress does not match %q:\n%s", want, out.String())
		}
	}
	assertFiles(t, filepath.Dir(binary), "lock", filepath.Base(binary))

	// No go command is needed when the binary exists.
	out = syncBuffer{}
	t.Setenv("PATH", "")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Dir(binary), old, old); err != nil {
		t.Fatal(err)
	}
	again, err := findBinary(t.Context(), o)
	if err != nil || again != binary {
		t.Errorf("the second time got %q, %v; want %q", again, err, binary)
	}
	if out.String() != "" {
		t.Errorf("unexpected progress: %s", out.String())
	}
	if info, err := os.Stat(filepath.Dir(binary)); err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("the binary is not marked as used: %v, %v", info, err)
	}
}

func TestBuildFromModuleProxy(t *testing.T) {
	cache := emptyCache(t)
	useModuleProxy(t, "v0.1.0", checkout(t))
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"go.mod": "module example.com/user\n\ngo 1.26.0\n\nrequire trueup.dev v0.1.0\n"})
	t.Chdir(dir)
	var out syncBuffer
	binary, err := findBinary(t.Context(), &Options{Progress: &out})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(cache, "v0.1.0-"+runtime.GOOS+"-"+runtime.GOARCH); filepath.Dir(binary) != want {
		t.Errorf("built %s, want it in %s", binary, want)
	}
	if output, err := exec.Command(binary).CombinedOutput(); err != nil || string(output) != "built\n" {
		t.Errorf("the binary printed %q, %v", output, err)
	}
	for _, want := range []string{
		"from trueup.dev/controlplane v0.1.0;", "downloading modules: 1 so far, now trueup.dev",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("progress does not contain %q:\n%s", want, out.String())
		}
	}
	assertFiles(t, filepath.Dir(binary), "lock", filepath.Base(binary))
}

func TestBuildFailures(t *testing.T) {
	cases := map[string]struct {
		change func(t *testing.T, root string)
		want   []string
	}{
		"the compiler's message": {
			func(t *testing.T, root string) {
				writeFiles(t, root, map[string]string{mainFile: "package main\n\nfunc main() { missing() }\n"})
			},
			[]string{"building the control plane from ", "go build: exit status 1", "main.go:3:15: undefined: missing"},
		},
		"a missing program": {
			func(t *testing.T, root string) {
				if err := os.RemoveAll(filepath.Join(root, "controlplane", "cmd")); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"go list: exit status 1", controlPlaneMain},
		},
		"no go command": {
			func(t *testing.T, _ string) { t.Setenv("PATH", "") },
			[]string{"no go command is on the PATH", "https://go.dev/dl", BinaryVariable, KubeconfigVariable},
		},
		"no cache directory": {
			func(t *testing.T, _ string) {
				for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
					t.Setenv(name, "")
				}
			},
			[]string{"no cache directory", BinaryVariable},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cache := emptyCache(t)
			root := checkout(t)
			c.change(t, root)
			t.Chdir(root)
			binary, err := findBinary(t.Context(), &Options{Progress: io.Discard})
			if err == nil {
				t.Fatalf("got binary %s", binary)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q:\n%v", want, err)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(cache, "*", "[^l]*")); len(left) > 0 {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

// fakeBuild prepares a build by the fake go command in a checkout. open lets it finish, builds returns how often it
// started.
func fakeBuild(t *testing.T) (cache string, open func(), builds func() int) {
	t.Helper()
	cache = emptyCache(t)
	bin, state := t.TempDir(), t.TempDir()
	installFake(t, bin, "go")
	t.Setenv("PATH", bin)
	log, gate := filepath.Join(state, "log"), filepath.Join(state, "gate")
	t.Setenv(buildLogVariable, log)
	t.Setenv(gateVariable, gate)
	t.Chdir(checkout(t))
	open = func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	builds = func() int {
		content, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return bytes.Count(content, []byte("\n"))
	}
	return cache, open, builds
}

// buildingProcess is another process that needs the binary.
func buildingProcess() int {
	binary, err := findBinary(context.Background(), &Options{Progress: os.Stderr})
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	_, _ = os.Stdout.WriteString(binary)
	return 0
}

func startBuildingProcess(t *testing.T) (cmd *exec.Cmd, stdout, stderr *syncBuffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr = &syncBuffer{}, &syncBuffer{}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=builder")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, stdout, stderr
}

func TestParallelProcessesBuildOnce(t *testing.T) {
	_, open, builds := fakeBuild(t)
	t.Cleanup(open)
	first, firstPath, _ := startBuildingProcess(t)
	eventually(t, 10*time.Second, "the first process builds", func() bool { return builds() == 1 })
	second, secondPath, secondProgress := startBuildingProcess(t)
	var group sync.WaitGroup
	var hereProgress syncBuffer
	var here string
	var hereErr error
	group.Go(func() { here, hereErr = findBinary(t.Context(), &Options{Progress: &hereProgress}) })
	for _, progress := range []*syncBuffer{secondProgress, &hereProgress} {
		want := "waiting for process " + strconv.Itoa(first.Process.Pid) + ", which is building the control plane"
		eventually(t, 10*time.Second, "it prints "+want, func() bool { return strings.Contains(progress.String(), want) })
	}
	open()
	group.Wait()
	for _, cmd := range []*exec.Cmd{first, second} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if hereErr != nil {
		t.Error(hereErr)
	}
	if builds() != 1 {
		t.Errorf("got %d builds, want 1", builds())
	}
	if diff := cmp.Diff([]string{here, here}, []string{firstPath.String(), secondPath.String()}); diff != "" {
		t.Errorf("different binaries (-this process +others):\n%s", diff)
	}
	if err := checkExecutable(here); err != nil {
		t.Error(err)
	}
}

func TestKilledBuilderLeavesNoLock(t *testing.T) {
	cache, open, builds := fakeBuild(t)
	t.Cleanup(open)
	killed, _, _ := startBuildingProcess(t)
	eventually(t, 10*time.Second, "the first process builds", func() bool { return builds() == 1 })
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Do not call Wait: the orphaned go command still holds the pipes.
	if _, err := killed.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "*", buildDirPattern)); len(found) != 1 {
		t.Fatalf("got directories %v of the killed build, want one", found)
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "*", binaryName+"*")); len(found) != 0 {
		t.Fatalf("got a binary before the end of the build: %v", found)
	}

	var out syncBuffer
	var group sync.WaitGroup
	var binary string
	var err error
	group.Go(func() { binary, err = findBinary(t.Context(), &Options{Progress: &out}) })
	eventually(t, 10*time.Second, "the second builds", func() bool { return builds() == 2 })
	open()
	group.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "waiting") {
		t.Errorf("waited for a killed process:\n%s", out.String())
	}
	assertFiles(t, filepath.Dir(binary), "lock", filepath.Base(binary))
}

func TestBuildEndsWithContext(t *testing.T) {
	cache, open, builds := fakeBuild(t)
	t.Cleanup(open)
	cause := errors.New("canceled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	var group sync.WaitGroup
	var err error
	group.Go(func() { _, err = findBinary(ctx, &Options{Progress: io.Discard}) })
	eventually(t, 10*time.Second, "builds", func() bool { return builds() == 1 })
	cancel(cause)
	group.Wait()
	if !errors.Is(err, cause) {
		t.Errorf("got error %v, want one that wraps %q", err, cause)
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "*", "[^l]*")); len(found) != 0 {
		t.Errorf("files left: %v", found)
	}
}

func TestRemoveUnused(t *testing.T) {
	cache := t.TempDir()
	writeFiles(t, cache, map[string]string{
		"tree-new/" + binaryName: "", "tree-old/" + binaryName: "", "tree-old/lock": "",
		"v0.1.0-linux-amd64/" + binaryName: "", "tree-building/lock": "",
	})
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"tree-old", "v0.1.0-linux-amd64"} {
		if err := os.Chtimes(filepath.Join(cache, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	removeUnused(cache, time.Now().Add(-time.Hour))
	assertFiles(t, cache, "tree-building", "tree-new", "v0.1.0-linux-amd64")
}

// assertFiles compares the names in dir, in order.
func assertFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files in %s (-want +got):\n%s", dir, diff)
	}
}

func TestCompilerEnvKeepsTheUsersSetting(t *testing.T) {
	t.Setenv("GOGC", "")
	if diff := cmp.Diff([]string{"GOGC=400"}, compilerEnv()); diff != "" {
		t.Errorf("without a setting (-want +got):\n%s", diff)
	}
	t.Setenv("GOGC", "50")
	if got := compilerEnv(); got != nil {
		t.Errorf("with a setting = %v, want none", got)
	}
}

// The packages that are compiled with other flags must not be those that many programs share.
func TestCompilerFlagsSpareSharedPackages(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "trueup.dev/operator").Output()
	if err != nil {
		t.Fatal(err)
	}
	var separate []string
	shared := strings.Fields(string(out))
	for _, name := range shared {
		for _, flag := range strings.Fields(compilerFlagsFile) {
			pattern := strings.TrimSuffix(strings.TrimPrefix(flag, "-gcflags="), "=-dwarf=false")
			if prefix, ok := strings.CutSuffix(pattern, "..."); ok && strings.HasPrefix(name, prefix) {
				separate = append(separate, name)
			}
		}
	}
	const most = 20
	if len(shared) < 100 || len(separate) > most {
		t.Errorf("%d of %d packages of an operator are compiled twice, want at most %d: %v",
			len(separate), len(shared), most, separate)
	}
}
