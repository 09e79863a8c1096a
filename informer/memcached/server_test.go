// SPDX-License-Identifier: Apache-2.0

package memcached_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"trueup.dev/informer/memcached"
	"trueup.dev/internal/testkit/await"
)

// server is a real memcached behind a Unix socket. It can be stopped and started again.
type server struct {
	testing.TB
	binary, socket string
	options        []string
	running        *exec.Cmd
}

func newServer(t testing.TB, options ...string) *server {
	t.Helper()
	binary, err := exec.LookPath("memcached")
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("memcached is not installed, and CI must install it: %v", err)
	default:
		t.Skipf("memcached is not installed, on Debian: apt-get install memcached: %v", err)
	}
	folder, err := os.MkdirTemp("", "memcached") // a socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	s := &server{TB: t, binary: binary, socket: filepath.Join(folder, "socket"), options: options}
	t.Cleanup(func() {
		s.stop()
		os.RemoveAll(folder)
	})
	s.start()
	return s
}

func (s *server) start() {
	s.Helper()
	args := append([]string{"-s", s.socket}, s.options...)
	if os.Getuid() == 0 {
		args = append(args, "-u", "root")
	}
	s.running = exec.Command(s.binary, args...)
	s.running.Stderr = os.Stderr
	if err := s.running.Start(); err != nil {
		s.Fatal(err)
	}
	await.Nil(s, 10*time.Second, func() error {
		connection, err := net.Dial("unix", s.socket)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// forward forwards connections of a listener to the server.
func (s *server) forward(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("unix", s.socket)
		if err != nil {
			from.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				pair[0].Close()
			}()
		}
	}
}

func (s *server) stop() {
	if s.running == nil {
		return
	}
	_ = s.running.Process.Kill()
	_ = s.running.Wait()
	s.running = nil
	os.Remove(s.socket)
}

func (s *server) store(change func(*memcached.Config)) *memcached.Store {
	s.Helper()
	config := memcached.Config{Addrs: []string{s.socket}, KeyPrefix: "test:"}
	if change != nil {
		change(&config)
	}
	store, err := memcached.NewStore(config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = store.Close() })
	return store
}
