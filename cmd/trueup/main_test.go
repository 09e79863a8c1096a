// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"trueup.dev/sandbox"
)

// grace is how long processes and files may exist after the process that started them was killed.
const grace = 5 * time.Second

var binary string // the command under test

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "trueup-test-*")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "trueup")
	// Like go run and go test, without the tables of debuggers: they take a third of the time of the linker.
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary)
	if raceDetector {
		build.Args = append(build.Args, "-race") // a data race ends the command with exit code 66
	}
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// controlPlaneIsBuilt builds the control plane, so that a start takes seconds. The deadlines of tests depend on that.
var controlPlaneIsBuilt = sync.OnceValue(func() error {
	_, err := sandbox.Build(context.Background(), sandbox.Options{})
	return err
})

// command is a run of the command.
type command struct {
	*exec.Cmd
	t      *testing.T
	temp   string // its directory for temporary files
	stdout *bytes.Buffer
	stderr *bytes.Buffer
	lines  chan string // lines of stdout
	exited chan struct{}
}

// start starts the command. At the end of the test it checks that no processes and files are left.
func start(t *testing.T, args ...string) *command {
	t.Helper()
	return startWith(t, nil, args...)
}

func startWith(t *testing.T, env []string, args ...string) *command {
	t.Helper()
	if err := controlPlaneIsBuilt(); err != nil {
		t.Fatal(err)
	}
	return startNow(t, env, args...)
}

// withoutCluster is the environment of commands with --memory: they refuse an existing cluster.
var withoutCluster = []string{sandbox.KubeconfigVariable + "="}

// startNow is startWith for commands that need no control plane.
func startNow(t *testing.T, env []string, args ...string) *command {
	t.Helper()
	c := &command{
		Cmd: exec.Command(binary, args...), t: t, temp: t.TempDir(),
		stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{},
		lines: make(chan string, 1000), exited: make(chan struct{}),
	}
	c.Env = append(os.Environ(), "TMPDIR="+c.temp)
	c.Env = append(c.Env, env...)
	c.Stderr = c.stderr
	read, write := io.Pipe()
	c.Stdout = io.MultiWriter(c.stdout, write)
	go func() {
		defer close(c.lines)
		scanner := bufio.NewScanner(read)
		for scanner.Scan() {
			c.lines <- scanner.Text()
		}
	}()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // the exit code is in ProcessState
		write.Close()
		close(c.exited)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-c.exited
	})
	return c
}

// patience ends shortly before the time limit of the whole test run: on a busy machine a control plane takes minutes to
// start, and a shorter limit would only fail by chance.
func (c *command) patience() <-chan time.Time {
	if end, limited := c.t.Deadline(); limited {
		return time.After(time.Until(end) - 20*time.Second)
	}
	return nil
}

// sees waits until a line of the output contains text, and returns the line.
func (c *command) sees(text string) string {
	c.t.Helper()
	deadline := c.patience()
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				c.t.Fatalf("the command has ended without %q:\n%s", text, c.output())
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-deadline:
			c.t.Fatalf("no %q until the end of the test run", text)
		}
	}
}

// ends waits for the end of the command and returns the exit code.
func (c *command) ends() int {
	c.t.Helper()
	select {
	case <-c.exited:
	case <-c.patience():
		c.t.Fatal("the command did not end")
	}
	return c.ProcessState.ExitCode()
}

// output returns the whole output. It must be called after the end of the command.
func (c *command) output() string {
	<-c.exited
	return fmt.Sprintf("--- stdout\n%s--- stderr\n%s", c.stdout, c.stderr)
}

func (c *command) lastLine() string {
	<-c.exited
	lines := strings.Split(strings.TrimRight(c.stdout.String(), "\n"), "\n")
	return lines[len(lines)-1]
}

// children returns the running processes that the command has started.
func (c *command) children() []int {
	c.t.Helper()
	if runtime.GOOS != "linux" {
		return nil // directories and ports are checked on every platform
	}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		c.t.Fatal(err)
	}
	var pids []int
	for _, file := range files {
		if pid, parent, state := readStat(file); parent == c.Process.Pid && state != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readStat reads the status of a process from /proc. It returns zero values if the process does not exist.
func readStat(file string) (pid, parent int, state string) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, ""
	}
	// "4711 (name, with anything in it) S 1 …"
	head, tail, _ := strings.Cut(string(content), " (")
	fields := strings.Fields(tail[strings.LastIndex(tail, ")")+1:])
	pid, _ = strconv.Atoi(head)
	parent, _ = strconv.Atoi(fields[1])
	return pid, parent, fields[0]
}

// leavesNothing waits until no process, directory or port of the command is left.
func (c *command) leavesNothing(children []int, host string) {
	c.t.Helper()
	deadline := time.Now().Add(grace)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		left := c.left(children, host)
		if left == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("still left after %s: %v", grace, left)
		}
		<-ticker.C
	}
}

func (c *command) left(children []int, host string) error {
	var left []error
	for _, pid := range children {
		if running, _, state := readStat(fmt.Sprintf("/proc/%d/stat", pid)); running != 0 && state != "Z" {
			left = append(left, fmt.Errorf("process %d", pid))
		}
	}
	entries, err := os.ReadDir(c.temp)
	if err != nil {
		left = append(left, err)
	}
	for _, entry := range entries {
		left = append(left, fmt.Errorf("directory %s", entry.Name()))
	}
	if host != "" {
		if connection, err := net.Dial("tcp", host); err == nil {
			connection.Close()
			left = append(left, fmt.Errorf("port %s", host))
		}
	}
	return errors.Join(left...)
}

// hostIn returns host and port of the URL in a line.
func hostIn(line string) string {
	_, host, _ := strings.Cut(line, "https://")
	return strings.TrimSpace(host)
}

func (c *command) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}
