// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStopsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, reason string
		stop         func(*process) error
	}{
		{"SIGTERM", "sent by supervisors", func(p *process) error { return p.command.Process.Signal(syscall.SIGTERM) }},
		{"SIGINT", "sent by Ctrl-C", func(p *process) error { return p.command.Process.Signal(syscall.SIGINT) }},
		{"stdin EOF", "the parent closes it or ends", func(p *process) error { return p.stdin.Close() }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Logf("reason: %s", c.reason)
			kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
			p := start(t, "--kubeconfig", kubeconfig)
			if _, err := os.Stat(kubeconfig); err != nil {
				t.Error(err)
			}
			// An open watch must not delay the stop.
			watch, err := p.client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			if err := c.stop(p); err != nil {
				t.Fatal(err)
			}
			p.waitGone(t)
			if _, err := os.Stat(kubeconfig); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("kubeconfig: %v, want it removed", err)
			}
		})
	}
}

// A signal during the start takes effect at every stage.
func TestStopsWhileStarting(t *testing.T) {
	temp := t.TempDir()
	stages := []struct{ name, file, contains string }{
		{"directory created", "lock", ""},
		{"certificates created", "kubeconfig", ""},
		{"etcd running", "etcd.sock", ""},
		{"kube-apiserver serving", "controlplane.log", "Serving securely"},
		{"garbage collector starting", "controlplane.log", `"garbagecollector"`},
	}
	for _, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			command := exec.Command(binary)
			command.Env = append(os.Environ(), "TMPDIR="+temp)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, waitLimit, stage.name, func(context.Context) error {
				matches, err := filepath.Glob(filepath.Join(temp, "trueup-controlplane-*", stage.file))
				if err != nil || len(matches) == 0 {
					return errors.Join(err, errors.New("file does not exist yet"))
				}
				if stage.contains == "" {
					return nil // a socket cannot be read
				}
				content, err := os.ReadFile(matches[0])
				if err == nil && !strings.Contains(string(content), stage.contains) {
					err = errors.New("not in the log yet")
				}
				return err
			})
			if err := command.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			exited := make(chan error, 1)
			go func() { exited <- command.Wait() }()
			took := eventually(t, stopLimit, "exit", func(context.Context) error {
				select {
				case err := <-exited:
					if err != nil {
						t.Errorf("exit: %v, want 0", err)
					}
					return nil
				default:
					return errors.New("still running")
				}
			})
			t.Logf("ended after %s", took)
			if left := foldersIn(t, temp); len(left) > 0 {
				t.Errorf("directories left: %v", left)
			}
		})
	}
}

// playParent starts the command as a parent process does, passes its ready line on, and waits to be killed.
func playParent() {
	command := exec.Command(os.Getenv(binaryVariable), "--output", "json", "--stop-with-stdin")
	stdin, err := command.StdinPipe()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	stdin.Close()
	os.Exit(1)
}

func TestParentKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), parentVariable+"=1", binaryVariable+"="+binary, "TMPDIR="+temp)
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var ready readyLine
	if err := json.Unmarshal(text, &ready); err != nil {
		t.Fatalf("ready line %q: %v", text, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	took := eventually(t, stopLimit, "control plane ended after its parent was killed", func(context.Context) error {
		if processAlive(ready.PID) {
			return fmt.Errorf("process %d is alive", ready.PID)
		}
		return nil
	})
	t.Logf("ended %s after the parent's SIGKILL", took)
	assertNothingLeft(t, temp, ready.URL)
}

// After SIGKILL of the control plane itself, only the next control plane can clean up.
func TestKilledControlPlaneIsCleanedUpByTheNext(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	first, err := launch(temp, "--controllers", "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.exited
	if _, err := os.Stat(first.Dir); err != nil {
		t.Fatalf("directory after SIGKILL: %v, want it to exist, or this test is meaningless", err)
	}
	second, err := launch(temp, "--controllers", "none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory of the killed control plane: %v, want it removed", err)
	}
	if err := second.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	second.waitGone(t)
}

func TestDataSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, "--dir", dir)
	configMaps := first.dynamic.Resource(configMapResource).Namespace("default")
	made := create(t, configMaps, "v1", "ConfigMap", "kept", nil)

	// While it runs, no other control plane can use the directory.
	_, err := launch(t.TempDir(), "--dir", dir)
	if want := fmt.Sprintf("error: dir %s: in use by another control plane (process %d)", dir, first.PID); err == nil ||
		!containsLine(err, want) {
		t.Errorf("second control plane in the same directory: %v, want %q", err, want)
	}

	if err := first.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.waitGone(t)

	second := start(t, "--dir", dir)
	found, err := second.dynamic.Resource(configMapResource).Namespace("default").Get(
		t.Context(), "kept", metav1.GetOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	if found.GetUID() != made.GetUID() {
		t.Errorf("uid = %s, want %s", found.GetUID(), made.GetUID())
	}
	if string(second.config.CAData) != string(first.config.CAData) {
		t.Error("got a new certificate authority, want the old one")
	}
	t.Logf("second start ready after %s", second.took)
	if err := second.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	second.waitGone(t)
	if _, err := os.Stat(filepath.Join(dir, "etcd")); err != nil {
		t.Errorf("data after stop: %v, want it kept", err)
	}
}

func TestSideBySide(t *testing.T) {
	t.Parallel()
	first, second := start(t, "--controllers", "none"), start(t, "--controllers", "none")
	create(t, first.dynamic.Resource(configMapResource).Namespace("default"), "v1", "ConfigMap", "mine", nil)
	if _, err := second.client.CoreV1().ConfigMaps("default").Get(t.Context(), "mine", metav1.GetOptions{}); err == nil {
		t.Error("the second control plane has the first one's object")
	}
	if _, err := first.client.CoreV1().ConfigMaps("default").Get(t.Context(), "mine", metav1.GetOptions{}); err != nil {
		t.Errorf("the first control plane lost its object: %v", err)
	}
}
