// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// orphan describes the control plane that a process has started.
type orphan struct {
	URL, Dir string
	PID      int
}

func init() { roles["parent"] = parent }

// parent is a process that starts a control plane and waits to be killed.
func parent() int {
	s, err := Start(context.Background(), Options{})
	if err == nil {
		err = json.NewEncoder(os.Stdout).
			Encode(orphan{URL: s.RESTConfig().Host, Dir: s.Dir(), PID: s.server.(*process).cmd.Process.Pid})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

func TestNothingSurvivesAKilledParent(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane: with -short, TestDemo_killed in cmd/trueup kills a parent")
	}
	t.Setenv(KubeconfigVariable, "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr syncBuffer
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=parent")
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var o orphan
	if err := json.NewDecoder(stdout).Decode(&o); err != nil {
		t.Fatalf("the parent did not start a control plane: %v\n%s", err, stderr.String())
	}
	address, err := url.Parse(o.URL)
	if err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		var left []string
		if running(o.PID) {
			left = append(left, "process "+strconv.Itoa(o.PID))
		}
		if connection, err := net.DialTimeout("tcp", address.Host, time.Second); err == nil {
			_ = connection.Close()
			left = append(left, "port "+address.Host)
		}
		if _, err := os.Stat(o.Dir); err == nil {
			left = append(left, "directory "+o.Dir)
		}
		return left
	}
	if found := left(); len(found) != 3 {
		t.Fatalf("before the end got %v, want a process, a port and a directory", found)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for found := left(); len(found) > 0; found = left() {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("5s after the parent was killed, still found %v", found)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("all removed after %s", time.Since(began).Round(time.Millisecond))
}

// running reports whether the process exists and is not a zombie. In a container the exit status may never be read.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return !os.IsNotExist(err) || !hasProc()
	}
	// The name in parentheses may contain any character. The state follows it.
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	return !bytes.HasPrefix(state, []byte("Z"))
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
