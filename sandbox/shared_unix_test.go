// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func init() { roles["sharer"] = sharer }

// sharerStep is what a process that shares a control plane prints.
type sharerStep struct {
	PID int
	Dir string
	Err string
}

// sharer is a process that uses a shared control plane until it is killed or the control plane ends. It installs a CRD
// when its standard input has a line with the description of the kind.
func sharer() int {
	out := json.NewEncoder(os.Stdout)
	s, err := openShared(context.Background(), Options{
		Controllers: []string{"none"}, DisablePods: true, Progress: io.Discard, StartTimeout: time.Minute,
	})
	if err != nil {
		_ = out.Encode(sharerStep{Err: err.Error()})
		return 1
	}
	_ = out.Encode(sharerStep{PID: s.server.(*lease).ready.PID, Dir: s.Dir()})
	go func() {
		<-s.Done()
		_ = out.Encode(sharerStep{Err: s.Err().Error()})
		os.Exit(0)
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		crd := newCRD("Shared")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = lines.Text()
		step := sharerStep{}
		if err := s.InstallCRDs(context.Background(), crd); err != nil {
			step.Err = err.Error()
		}
		_ = out.Encode(step)
	}
	return 0
}

type sharerProcess struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	steps *json.Decoder
}

func startSharer(t *testing.T) *sharerProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &sharerProcess{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), roleVariable+"=sharer")
	p.cmd.Stderr = os.Stderr
	p.cmd.Dir = t.TempDir() // processes share whatever their working directory is
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.steps = json.NewDecoder(stdout)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func (p *sharerProcess) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
}

func (p *sharerProcess) step(t *testing.T) sharerStep {
	t.Helper()
	var s sharerStep
	if err := p.steps.Decode(&s); err != nil {
		t.Errorf("a sharing process ended: %v", err)
	}
	return s
}

func (p *sharerProcess) install(t *testing.T, description string) string {
	t.Helper()
	if _, err := fmt.Fprintln(p.stdin, description); err != nil {
		t.Fatal(err)
	}
	return p.step(t).Err
}

// shareAlone lets the processes of a test share control planes with each other only.
func shareAlone(t *testing.T) (root string) {
	t.Helper()
	binary, err := findBinary(t.Context(), &Options{Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(BinaryVariable, binary)
	t.Setenv(KubeconfigVariable, "")
	t.Setenv(SharedVariable, "1s")
	// A path of t.TempDir() may be too long for a socket.
	dir, err := os.MkdirTemp("", "shared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	if root, err = leaseRoot(); err != nil {
		t.Fatal(err)
	}
	return root
}

func startSharers(t *testing.T, n int) ([]*sharerProcess, sharerStep) {
	t.Helper()
	sharers := make([]*sharerProcess, n)
	ready := make([]sharerStep, n)
	for i := range sharers {
		sharers[i] = startSharer(t)
	}
	var group sync.WaitGroup
	for i, p := range sharers {
		group.Go(func() { ready[i] = p.step(t) })
	}
	group.Wait()
	for _, r := range ready {
		if r.Err != "" || r != ready[0] {
			t.Fatalf("processes that started at once use different control planes: %+v", ready)
		}
	}
	return sharers, ready[0]
}

func TestProcessesShareOneControlPlane(t *testing.T) {
	root := shareAlone(t)
	sharers, ready := startSharers(t, 3)

	if err := sharers[0].install(t, "first"); err != "" {
		t.Error(err)
	}
	if err := sharers[1].install(t, "first"); err != "" {
		t.Errorf("a process cannot install the definition that another has installed: %s", err)
	}
	err := sharers[2].install(t, "second")
	if want := "shareds.example.com differs from the one of trueup.dev/sandbox (process "; !strings.Contains(err, want) {
		t.Errorf("another content: got error %q, want %q in it", err, want)
	}
	// The control plane notices the end of a process shortly after it.
	sharers[0].kill()
	eventually(t, 10*time.Second, "the only process that uses a definition can change it", func() bool {
		return sharers[1].install(t, "third") == ""
	})
	sharers[1].kill()
	eventually(t, 10*time.Second, "a definition of processes that have ended can be changed", func() bool {
		return sharers[2].install(t, "second") == ""
	})

	if !running(ready.PID) {
		t.Fatal("the control plane has ended, although a process uses it")
	}
	sharers[2].kill()
	began := time.Now()
	eventually(t, 10*time.Second, "nothing is left after all processes were killed", func() bool {
		return !running(ready.PID) && !exists(ready.Dir) && !exists(root)
	})
	t.Logf("all removed %s after the last process was killed", time.Since(began).Round(time.Millisecond))
}

func TestForTestLeavesDefinitionsOfOtherProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two control planes: with -short, TestProcessesShareOneControlPlane installs definitions")
	}
	shareAlone(t)
	// The binary has a separate name, so that other tests of this process use another control plane.
	binary := filepath.Join(t.TempDir(), "another")
	if err := os.Symlink(os.Getenv(BinaryVariable), binary); err != nil {
		t.Fatal(err)
	}
	t.Setenv(BinaryVariable, binary)
	sharers, ready := startSharers(t, 1)
	if err := sharers[0].install(t, "first"); err != "" {
		t.Fatal(err)
	}
	o := TestOptions{Options: Options{
		Binary: binary, Controllers: []string{"none"}, DisablePods: true, Progress: io.Discard,
	}}
	if err := o.prepare(); err != nil { // as ForTest does
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the ends of the environments
		// The control plane would run until the go command ends.
		defer eventually(t, 10*time.Second, "the control plane ends", func() bool { return !running(ready.PID) })
		defer func() { _ = syscall.Kill(ready.PID, syscall.SIGTERM) }()
		for _, private := range []bool{false, true} {
			o.Private = private
			s, err := sharedSandbox(t, o)
			if err == nil {
				err = s.Stop()
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	pid := func(e *Env) int {
		if l, ok := e.server.(*lease); ok {
			return l.ready.PID
		}
		return e.server.(*process).cmd.Process.Pid
	}
	without := ForTest(t, o)
	if got := pid(without); got != ready.PID {
		t.Errorf("without CRDs the test uses the control plane %d, want the shared one, %d", got, ready.PID)
	}
	o.CRDs = []any{newCRD("Shared")}
	if got := pid(ForTest(t, o)); got == ready.PID {
		t.Error("a test with another CRD of the same name uses the same control plane")
	}
	if err := without.InstallCRDs(t.Context(), o.CRDs...); err == nil ||
		!strings.Contains(err.Error(), "shareds.example.com differs") ||
		!strings.Contains(err.Error(), "set TestOptions.Private") {
		t.Errorf("InstallCRDs returned %v", err)
	}
}

func TestSharedControlPlaneIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two control planes: with -short, TestCrashLater ends a process that stands for one")
	}
	root := shareAlone(t)
	sharers, ready := startSharers(t, 2)
	if err := syscall.Kill(ready.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, p := range sharers {
		if got := p.step(t).Err; !strings.HasPrefix(got, "sandbox: the control plane exited") {
			t.Errorf("a process that used the control plane reported %q", got)
		}
	}
	if exists(ready.Dir) || exists(root) {
		t.Error("the directories of the killed control plane still exist")
	}
	next := startSharer(t)
	again := next.step(t)
	if again.Err != "" || again.PID == ready.PID {
		t.Errorf("after the control plane was killed, the next process got %+v", again)
	}
	// The starter ends; the control plane stays for another process.
	other := startSharer(t)
	if got := other.step(t); got != again {
		t.Errorf("got %+v, want the running control plane %+v", got, again)
	}
	next.kill()
	if got := other.install(t, "text"); got != "" {
		t.Errorf("after its starter was killed, the control plane does not work: %s", got)
	}
	other.kill()
	eventually(t, 10*time.Second, "nothing is left", func() bool { return !running(again.PID) && !exists(root) })
}

func TestSharedControlPlaneDoesNotStart(t *testing.T) {
	for behavior, want := range map[string]string{
		"crash at start": "the control plane did not start: exit status 1\n\tstarting etcd\n\terror: etcd: no space left",
		"never ready":    "starting the control plane: not ready after 200ms",
	} {
		t.Run(behavior, func(t *testing.T) {
			t.Setenv(behaviorVariable, behavior)
			t.Setenv(BinaryVariable, installFake(t, t.TempDir(), binaryName))
			root := shareAlone(t)
			o := Options{Progress: io.Discard}
			if err := o.prepare(); err != nil {
				t.Fatal(err)
			}
			if behavior == "never ready" {
				o.StartTimeout = 200 * time.Millisecond
			}
			if _, err := openShared(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want %q in it", err, want)
			}
			if behavior == "crash at start" && exists(root) {
				t.Errorf("%s still exists", root)
			}
		})
	}
}

func TestUnsafeDirectoryIsNotUsed(t *testing.T) {
	cases := map[string]struct {
		make func(path string) error
		want string
	}{
		"others may access it": {func(path string) error { return os.Mkdir(path, 0o755) }, "its mode is 755, want 700"},
		"a file":               {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "is not a directory"},
		"a link": {
			func(path string) error { return os.Symlink(os.TempDir(), path) }, "is not a directory",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withoutVariables(t)
			t.Setenv(behaviorVariable, "")
			t.Setenv(BinaryVariable, installFake(t, t.TempDir(), binaryName))
			root := shareAlone(t)
			if err := c.make(root); err != nil {
				t.Fatal(err)
			}
			var progress syncBuffer
			o := Options{Progress: &progress}
			if err := o.prepare(); err != nil {
				t.Fatal(err)
			}
			s, err := openShared(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Stop() }()
			if _, private := s.server.(*process); !private {
				t.Error("the control plane is shared")
			}
			if !strings.Contains(progress.String(), c.want) {
				t.Errorf("got message %q, want %q in it", progress.String(), c.want)
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
