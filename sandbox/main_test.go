// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The test binary acts as other programs, by its name or by the variable roleVariable.
const (
	roleVariable     = "SANDBOX_TEST_ROLE"
	behaviorVariable = "SANDBOX_TEST_BEHAVIOR" // behavior of the fake control plane
	triggerVariable  = "SANDBOX_TEST_TRIGGER"  // a file that makes the fake control plane crash
	buildLogVariable = "SANDBOX_TEST_BUILDS"   // the fake go command appends a line for each build
	gateVariable     = "SANDBOX_TEST_GATE"     // the fake go command finishes builds when this file exists
)

// roles are the processes that the test binary acts as, by the value of a variable.
var roles = map[string]func() int{"builder": buildingProcess, "envtest": envtestSuite}

func TestMain(m *testing.M) {
	switch strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") {
	case binaryName:
		os.Exit(fakeControlPlane())
	case "go":
		os.Exit(fakeGo())
	}
	if role, ok := roles[os.Getenv(roleVariable)]; ok {
		os.Exit(role())
	}
	// Race-enabled programs sleep for a second at their end. The ones started here do not need it.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// installFake makes the test binary available as dir/name.
func installFake(t *testing.T, dir, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// fakeControlPlane implements the command line of the control plane without a control plane.
func fakeControlPlane() int {
	behavior := os.Getenv(behaviorVariable)
	switch behavior {
	case "crash at start":
		fmt.Fprintln(os.Stderr, "starting etcd")
		fmt.Fprint(os.Stderr, "error: etcd: no space left on device")
		return 1
	case "never ready":
		fmt.Fprintln(os.Stderr, "waiting for etcd")
		waitForEOF()
		return 0
	case "other program":
		fmt.Println("usage: something else")
		waitForEOF()
		return 0
	}
	dir, private := "", true
	for i, arg := range os.Args {
		if arg == "--dir" {
			dir, private = os.Args[i+1], false
		}
	}
	var err error
	if private {
		dir, err = os.MkdirTemp("", privateDirPrefix+"*")
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	url := "https://" + listener.Addr().String()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(kubeconfigFor(url)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ready, err := json.Marshal(readyLine{URL: url, Kubeconfig: kubeconfig, Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(os.Stderr, "a line of the log")
	fmt.Println(string(ready))
	if behavior == "crash later" {
		awaitFile(os.Getenv(triggerVariable))
		fmt.Fprintln(os.Stderr, "panic: boom")
		return 2
	}
	waitForEOF()
	switch behavior {
	case "deaf":
		select {}
	case "fails to stop":
		fmt.Fprintln(os.Stderr, "error: stopping: etcd is stuck")
		return 3
	}
	if private {
		_ = os.RemoveAll(dir)
	}
	return 0
}

func kubeconfigFor(url string) string {
	return `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"clusters": [{"name": "c", "cluster": {"server": "` + url + `"}}],
"users": [{"name": "u", "user": {"token": "t"}}],
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`
}

// waitForEOF waits until no process uses this one.
func waitForEOF() {
	if !slices.Contains(os.Args, "--leases") {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if listener, err := net.FileListener(os.NewFile(3, "")); err == nil {
		if connection, err := listener.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, connection)
		}
	}
}

// awaitFile returns when the file exists. It gives up after a minute, so that no process outlives a failed test.
func awaitFile(path string) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

// fakeGo implements the go commands that a build needs. It builds the fake control plane.
func fakeGo() int {
	switch os.Args[1] {
	case "list":
		fmt.Printf("internal/goarch\n\n%s\n", controlPlaneMain)
	case "build":
		log, err := os.OpenFile(os.Getenv(buildLogVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Fprintln(log, "build")
		_ = log.Close()
		fmt.Fprintln(os.Stderr, "internal/goarch")
		awaitFile(os.Getenv(gateVariable))
		fmt.Fprintln(os.Stderr, controlPlaneMain)
		self, err := os.Executable()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		for i, arg := range os.Args {
			if arg == "-o" {
				err = os.Symlink(self, os.Args[i+1])
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// eventually waits until condition returns true.
func eventually(t *testing.T, within time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %s: %s", within, what)
		}
	}
}

// withoutVariables unsets the environment variables that select a control plane.
func withoutVariables(t *testing.T) {
	t.Helper()
	t.Setenv(BinaryVariable, "")
	t.Setenv(KubeconfigVariable, "")
}
