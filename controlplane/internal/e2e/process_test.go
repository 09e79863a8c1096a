// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	corev1 "k8s.io/api/core/v1"
)

const (
	startLimit = 60 * time.Second // generous, because machines that run tests are busy
	stopLimit  = 5 * time.Second
	waitLimit  = 30 * time.Second

	maxPrefix = 50 // leaves room for the random suffix of a generated name
)

// readyLine is the line that the command prints with --output json.
type readyLine struct {
	URL, Kubeconfig, Dir, KubernetesVersion string
	PID                                     int
}

// process is a running command.
type process struct {
	readyLine
	command *exec.Cmd
	stdin   io.WriteCloser
	stderr  *output
	temp    string // its TMPDIR
	took    time.Duration
	exited  chan struct{}
	err     error

	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// output collects the output of a process while tests read it.
type output struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content.String()
}

// launch starts the command with its own temporary directory and waits for its ready line.
func launch(temp string, args ...string) (*process, error) {
	p := &process{temp: temp, stderr: &output{}, exited: make(chan struct{})}
	p.command = exec.Command(binary, append([]string{"--output", "json", "--stop-with-stdin"}, args...)...)
	p.command.Env = append(os.Environ(), "TMPDIR="+temp)
	p.command.Stderr = p.stderr
	var err error
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		defer close(p.exited)
		reader := bufio.NewReader(stdout)
		text, _ := reader.ReadString('\n')
		line <- text
		rest, _ := io.ReadAll(reader)
		p.err = p.command.Wait()
		if len(rest) > 0 {
			p.err = errors.Join(p.err, fmt.Errorf("more than one line on stdout: %q", rest))
		}
	}()
	select {
	case text := <-line:
		p.took = time.Since(begin)
		if err := json.Unmarshal([]byte(text), &p.readyLine); err != nil {
			<-p.exited
			return nil, fmt.Errorf("no ready line: %w, exit: %w, stderr: %s", err, p.err, p.stderr)
		}
	case <-time.After(startLimit):
		_ = p.command.Process.Kill()
		return nil, fmt.Errorf("not ready after %s", startLimit)
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig); err != nil {
		return nil, err
	}
	p.config.QPS = -1
	if p.client, err = kubernetes.NewForConfig(p.config); err != nil {
		return nil, err
	}
	p.dynamic, err = dynamic.NewForConfig(p.config)
	return p, err
}

// start launches a control plane for one test.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p, err := launch(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stdin.Close()
		select {
		case <-p.exited:
		case <-time.After(stopLimit):
			_ = p.command.Process.Kill()
		}
	})
	return p
}

// waitGone checks that the process ends in time with exit code 0 and leaves no files.
func (p *process) waitGone(t *testing.T) {
	t.Helper()
	begin := time.Now()
	select {
	case <-p.exited:
	case <-time.After(stopLimit):
		t.Fatalf("still running after %s", stopLimit)
	}
	t.Logf("ended after %s", time.Since(begin).Round(time.Millisecond))
	if p.err != nil && p.command.ProcessState == nil {
		t.Fatal(p.err)
	}
	if got := p.command.ProcessState.ExitCode(); got != 0 {
		t.Errorf("exit code = %d, want 0; stderr: %s", got, p.stderr)
	}
	if got := p.stderr.String(); got != "" {
		t.Errorf("stderr = %q, want no output", got)
	}
	assertNothingLeft(t, p.temp, p.URL)
}

// assertNothingLeft checks that the temporary directories are removed and the port is closed.
func assertNothingLeft(t *testing.T, temp, serverURL string) {
	t.Helper()
	if left := foldersIn(t, temp); len(left) > 0 {
		t.Errorf("directories left: %v", left)
	}
	parsed, err := url.Parse(serverURL)
	if err != nil {
		t.Fatal(err)
	}
	if connection, err := net.DialTimeout("tcp", parsed.Host, time.Second); err == nil {
		connection.Close()
		t.Errorf("port %s still accepts connections", parsed.Port())
	}
}

func foldersIn(t *testing.T, temp string) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// processAlive returns false for a process that has ended, even if its exit code has not been read yet.
func processAlive(pid int) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(state, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

// eventually polls until check returns nil.
func eventually(t *testing.T, limit time.Duration, what string, check func(context.Context) error) time.Duration {
	t.Helper()
	begin := time.Now()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(t.Context())
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > limit {
			t.Fatalf("%s: timed out after %s: %v", what, limit, err)
		}
		<-ticker.C
	}
}

var shared struct {
	once    sync.Once
	process *process
	temp    string
	err     error
}

// sharedProcess is one control plane for all tests that only use its API.
func sharedProcess(t *testing.T) *process {
	t.Helper()
	shared.once.Do(func() {
		if shared.temp, shared.err = os.MkdirTemp("", "controlplane-test-*"); shared.err == nil {
			shared.process, shared.err = launch(shared.temp)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.process
}

func stopShared() {
	if shared.process != nil {
		shared.process.stdin.Close()
		<-shared.process.exited
	}
	if shared.temp != "" {
		os.RemoveAll(shared.temp)
	}
}

// namespace creates a namespace for the test.
func (p *process) namespace(t *testing.T) string {
	t.Helper()
	prefix := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	namespace, err := p.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix[:min(len(prefix), maxPrefix)] + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}
