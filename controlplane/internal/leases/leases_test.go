// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const timeout = 10 * time.Second

// serve starts leases in a directory of their own, and returns a channel that is closed when they have expired.
func serve(t *testing.T, grace time.Duration) (l *Leases, dir string, expired <-chan struct{}) {
	t.Helper()
	root, err := os.MkdirTemp("", "leases") // a path of t.TempDir() may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	dir = filepath.Join(root, "one", "key")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	l = Serve(dir, listener, grace, func() { close(ended) })
	t.Cleanup(l.Close)
	return l, dir, ended
}

type program struct {
	net.Conn
	lines *bufio.Scanner
}

func connect(t *testing.T, dir string) *program {
	t.Helper()
	connection, err := net.Dial("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	return &program{Conn: connection, lines: bufio.NewScanner(connection)}
}

func (p *program) read(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("no line: %v", p.lines.Err())
	}
	return p.lines.Text()
}

func (p *program) request(t *testing.T, name string, claims map[string]string) Reply {
	t.Helper()
	if err := json.NewEncoder(p).Encode(Request{Client: name, Claims: claims}); err != nil {
		t.Fatal(err)
	}
	var reply Reply
	if err := json.Unmarshal([]byte(p.read(t)), &reply); err != nil {
		t.Fatal(err)
	}
	return reply
}

func await(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(timeout):
		t.Fatalf("timed out: %s", what)
	}
}

func TestLeasesExpireWithTheLastProgram(t *testing.T) {
	l, dir, expired := serve(t, 100*time.Millisecond)
	first, second := connect(t, dir), connect(t, dir)
	l.Ready([]byte("ready\n"))
	for _, p := range []*program{first, second, connect(t, dir)} {
		if got := p.read(t); got != "ready" {
			t.Errorf("read %q, want ready", got)
		}
		if p != second {
			_ = p.Close()
		}
	}
	select {
	case <-expired:
		t.Fatal("expired while a program is connected")
	case <-time.After(300 * time.Millisecond):
	}
	_ = second.Close()
	await(t, "the leases expire", expired)
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s still exists: %v", path, err)
		}
	}
}

func TestLeasesExpireWithoutAProgram(t *testing.T) {
	_, _, expired := serve(t, 10*time.Millisecond)
	await(t, "the leases expire", expired)
}

func TestLeasesDoNotExpireWhileAProgramStartsAnother(t *testing.T) {
	_, dir, expired := serve(t, 50*time.Millisecond)
	unlock := lock(filepath.Dir(dir))
	select {
	case <-expired:
		t.Error("expired while another program holds the lock")
	case <-time.After(200 * time.Millisecond):
	}
	p := connect(t, dir)
	// The reply shows that the connection was accepted.
	if got := p.request(t, "p", nil); got != (Reply{}) {
		t.Errorf("got %+v", got)
	}
	unlock()
	select {
	case <-expired:
		t.Error("expired while a program is connected")
	case <-time.After(200 * time.Millisecond):
	}
	_ = p.Close()
	await(t, "the leases expire", expired)
}

func TestCloseKeepsConnectionsAndOtherDirectories(t *testing.T) {
	l, dir, _ := serve(t, time.Hour)
	p := connect(t, dir)
	p.request(t, "p", nil)
	other := filepath.Join(filepath.Dir(dir), "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := net.Dial("unix", filepath.Join(dir, "socket")); err == nil {
		t.Error("got a lease after Close")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if got := p.request(t, "p", nil); got != (Reply{}) { // still answered
		t.Errorf("got %+v", got)
	}
}

func TestClaims(t *testing.T) {
	_, dir, _ := serve(t, time.Hour)
	a, b := connect(t, dir), connect(t, dir)
	steps := []struct {
		what   string
		by     *program
		claims map[string]string
		want   Reply
	}{
		{"a new claim", a, map[string]string{"x": "1"}, Reply{}},
		{"the same value", b, map[string]string{"x": "1"}, Reply{}},
		{"another value", b, map[string]string{"x": "2", "y": "1"}, Reply{Conflict: "x", Client: "a"}},
		{"nothing was granted with the conflict", a, map[string]string{"y": "2"}, Reply{}},
		{"another value of a claim of its own", a, map[string]string{"y": "3"}, Reply{}},
		{"several, one of which conflicts", b, map[string]string{"y": "2", "z": "1"}, Reply{Conflict: "y", Client: "a"}},
	}
	for _, s := range steps {
		name := map[*program]string{a: "a", b: "b"}[s.by]
		if diff := cmp.Diff(s.want, s.by.request(t, name, s.claims)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.what, diff)
		}
	}
	_ = a.Close()
	deadline := time.Now().Add(timeout)
	for got := (Reply{Conflict: "y"}); got.Conflict != ""; {
		if got = b.request(t, "b", map[string]string{"y": "2"}); got.Conflict == "" && !got.Replaced {
			t.Error("the reply does not report that the value of an ended program was replaced")
		}
		if time.Now().After(deadline) {
			t.Fatal("the claims of an ended program are still held")
		}
	}
}

func TestOtherRequestsEndTheLease(t *testing.T) {
	_, dir, expired := serve(t, time.Millisecond)
	p := connect(t, dir)
	if _, err := p.Write([]byte("GET / HTTP/1.1\n")); err != nil {
		t.Fatal(err)
	}
	await(t, "the lease ends", expired)
}

func TestLeasesDoNotExpireBeforeTheRunner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc")
	}
	runner := exec.Command("sleep", "60")
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		_ = runner.Process.Kill()
		_ = runner.Wait()
	})
	defer end()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(runner.Process.Pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, dir, expired := serve(t, 10*time.Millisecond)
	p := connect(t, dir)
	process := Process{PID: runner.Process.Pid, Start: strings.Fields(string(stat))[21]}
	if err := json.NewEncoder(p).Encode(Request{Client: "p", Runner: &process}); err != nil {
		t.Fatal(err)
	}
	p.read(t)
	_ = p.Close()
	select {
	case <-expired:
		t.Fatal("expired although the runner can start another program")
	case <-time.After(300 * time.Millisecond):
	}
	if another := (Process{PID: process.PID, Start: "1"}); another.exists() {
		t.Error("a process with another start was taken for this one")
	}
	end()
	await(t, "the leases expire after the runner", expired)
}
