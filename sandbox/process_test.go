// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// startFake starts the fake control plane with the given behavior. Its temporary files are in a directory of the test.
func startFake(t *testing.T, behavior string, o Options) (*Sandbox, error) {
	t.Helper()
	withoutVariables(t)
	t.Setenv(behaviorVariable, behavior)
	t.Setenv("TMPDIR", t.TempDir())
	o.Binary = installFake(t, t.TempDir(), binaryName)
	o.Progress = io.Discard
	s, err := Start(t.Context(), o)
	if err == nil {
		t.Cleanup(func() { _ = s.Stop() })
	}
	return s, err
}

func TestStartFailures(t *testing.T) {
	cases := map[string]struct {
		behavior string
		want     []string
	}{
		"the error contains the last output, even without a newline": {
			"crash at start",
			[]string{
				"the control plane did not start",
				"exit status 1",
				"starting etcd\n",
				"error: etcd: no space left on device",
			},
		},
		"another program is detected immediately": {
			"other program",
			[]string{"is not a control plane of this version", `it printed "usage: something else"`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := startFake(t, c.behavior, Options{})
			if err == nil {
				t.Fatalf("Start succeeded: %+v", s)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not contain %q:\n%v", want, err)
				}
			}
			if left := privateDirs(t); len(left) > 0 {
				t.Errorf("directories left: %v", left)
			}
		})
	}
}

// On a busy machine, a program may need longer than a short time-out to write its first line.
func TestStartTimeout(t *testing.T) {
	for timeout := 700 * time.Millisecond; ; timeout *= 2 {
		_, err := startFake(t, "never ready", Options{StartTimeout: timeout})
		if want := fmt.Sprintf("was not ready after %s", timeout); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("error %v does not contain %q", err, want)
		}
		if left := privateDirs(t); len(left) > 0 {
			t.Errorf("directories left: %v", left)
		}
		if strings.Contains(err.Error(), "waiting for etcd") {
			return
		}
		if timeout > time.Minute {
			t.Fatalf("the error does not contain the last output:\n%v", err)
		}
	}
}

func TestStartEndsWithContext(t *testing.T) {
	withoutVariables(t)
	t.Setenv(behaviorVariable, "never ready")
	cause := errors.New("canceled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	_, err := Start(ctx, Options{Binary: installFake(t, t.TempDir(), binaryName), Progress: io.Discard})
	if !errors.Is(err, cause) {
		t.Errorf("got error %v, want one that wraps %q", err, cause)
	}
}

func TestContextBoundsStartOnly(t *testing.T) {
	withoutVariables(t)
	t.Setenv(behaviorVariable, "")
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Options{Binary: installFake(t, t.TempDir(), binaryName), Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-s.Done():
		t.Errorf("ended with the context of Start: %v", s.Err())
	case <-time.After(200 * time.Millisecond):
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestStop(t *testing.T) {
	s, err := startFake(t, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err before the end: %v", err)
	}
	if got := s.RESTConfig().QPS; got != -1 {
		t.Errorf("QPS is %v, want -1", got)
	}
	s.RESTConfig().Host = "changed"
	if s.RESTConfig().Host == "changed" {
		t.Error("RESTConfig does not return a copy")
	}
	if want := filepath.Join(s.Dir(), "kubeconfig"); s.KubeconfigPath() != want {
		t.Errorf("KubeconfigPath is %s, want %s", s.KubeconfigPath(), want)
	}
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if err := s.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
			if !errors.Is(s.Err(), ErrStopped) {
				t.Errorf("Err after Stop: %v", s.Err())
			}
		})
	}
	group.Wait()
	<-s.Done()
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("the directory still exists: %v", err)
	}
}

func TestStopUsesForce(t *testing.T) {
	s, err := startFake(t, "deaf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.server.(*process).grace = 100 * time.Millisecond
	err = s.Stop()
	if err == nil || !strings.Contains(err.Error(), "did not stop within 100ms and was killed\n\ta line of the log") {
		t.Errorf("Stop returned: %v", err)
	}
	if again := s.Stop(); !errors.Is(again, err) {
		t.Errorf("second Stop returned %v, want %v", again, err)
	}
	if !errors.Is(s.Err(), ErrStopped) {
		t.Errorf("Err: %v", s.Err())
	}
	if left := privateDirs(t); len(left) > 0 {
		t.Errorf("directories left: %v", left)
	}
}

func TestStopReportsFailure(t *testing.T) {
	s, err := startFake(t, "fails to stop", Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Stop()
	if err == nil || !strings.Contains(err.Error(), "exit status 3") ||
		!strings.Contains(err.Error(), "error: stopping: etcd is stuck") {
		t.Errorf("Stop returned: %v", err)
	}
	if left := privateDirs(t); len(left) > 0 {
		t.Errorf("directories left: %v", left)
	}
}

func TestCrashLater(t *testing.T) {
	trigger := filepath.Join(t.TempDir(), "crash")
	t.Setenv(triggerVariable, trigger)
	s, err := startFake(t, "crash later", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("Done is not closed")
	}
	want := "sandbox: the control plane exited: exit status 2\n\ta line of the log\n\tpanic: boom"
	if diff := cmp.Diff(want, s.Err().Error()); diff != "" {
		t.Errorf("Err (-want +got):\n%s", diff)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("Stop after the crash: %v", err)
	}
	if diff := cmp.Diff(want, s.Err().Error()); diff != "" {
		t.Errorf("Err after Stop (-want +got):\n%s", diff)
	}
	if left := privateDirs(t); len(left) > 0 {
		t.Errorf("directories left: %v", left)
	}
}

func TestDirStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), privateDirPrefix+"kept")
	s, err := startFake(t, "", Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if s.Dir() != dir {
		t.Errorf("Dir is %s, want %s", s.Dir(), dir)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); err != nil {
		t.Errorf("the data no longer exists: %v", err)
	}
}

func TestLogOutput(t *testing.T) {
	for name, c := range map[string]struct {
		verbosity int
		want      string
	}{
		"silent by default":           {0, ""},
		"logs at the given verbosity": {2, "a line of the log\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s, err := startFake(t, "", Options{Verbosity: c.verbosity, LogOutput: &log})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, log.String()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	always := []string{"--output", "json"}
	cases := map[string]struct {
		o    Options
		want []string
	}{
		"the control plane's defaults apply": {Options{}, nil},
		"everything": {
			Options{
				Dir: "/d", Controllers: []string{"a", "b"}, DisablePods: true, Verbosity: 4,
				APIServerArgs: []string{"a=1", "b=2,3"}, EmulatedVersion: "1.36", AuditLog: "/audit log",
			},
			[]string{
				"--dir", "/d", "--controllers", "a,b", "--pods=false", "--apiserver-arg", "a=1", "--apiserver-arg", "b=2,3",
				"--emulated-version", "1.36", "--audit-log", "/audit log", "-v", "4",
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(append(always[:2:2], c.want...), arguments(&c.o)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseReadyLine(t *testing.T) {
	for name, line := range map[string]string{
		"no JSON":                  "ready",
		"an empty object":          "{}",
		"a relative directory":     `{"url": "https://x", "kubeconfig": "/k", "dir": "d"}`,
		"a kubeconfig is required": `{"url": "https://x", "dir": "/d"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := parseReadyLine(line); err == nil {
				t.Errorf("got no error for %s: %+v", line, r)
			}
		})
	}
}

// privateFolders returns the directories that fake control planes created in this test.
func privateDirs(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), privateDirPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
