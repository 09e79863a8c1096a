// SPDX-License-Identifier: Apache-2.0

// Package leases lets several programs share a control plane, and ends it when none of them uses it any longer.
//
// A program holds a lease while it is connected to a unix socket. The operating system closes the connection when the
// program ends for any reason, so no lease outlives its program. The directory of the socket is removed before the
// control plane stops, with its parent directory locked. A program that connects while it holds the same lock
// therefore never gets a control plane that is about to stop.
package leases

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// writeTimeout limits a message to a program. A program that does not read for so long, for example because it is
// stopped in a debugger, keeps its lease and misses the message.
const writeTimeout = time.Second

// Leases are the programs that use a control plane.
type Leases struct {
	dir      string
	listener net.Listener
	grace    time.Duration
	expired  func()

	mu      sync.Mutex
	clients map[net.Conn]*client
	claims  map[string]string // the last granted value of each claim
	ready   []byte
	runners map[Process]bool
	idle    *time.Timer
	closed  bool
}

type client struct {
	name   string
	claims map[string]bool
}

// Request is a message of a program, one line of JSON. It claims names, such as the names of definitions, with the
// values that the program needs. Two programs cannot hold a claim with different values at the same time.
type Request struct {
	// Client describes the program, for error messages of others.
	Client string `json:"client"`
	// Runner is the go command that runs the program, if there is one. It may run another program later, so the leases do
	// not expire before it has ended.
	Runner *Process `json:"runner,omitempty"`
	// Claims are all granted, or none is.
	Claims map[string]string `json:"claims"`
}

// Reply is the answer to a request, one line of JSON.
type Reply struct {
	// Conflict is the claim that another program holds with another value, and Client describes that program. They are
	// empty if all claims are granted.
	Conflict string `json:"conflict,omitempty"`
	Client   string `json:"client,omitempty"`
	// Replaced reports whether another program, which has ended, claimed one of the names with another value.
	Replaced bool `json:"replaced,omitempty"`
}

// Serve accepts leases on a listener whose socket is in dir. It calls expired once, when there has been no lease for
// the time of grace, also if there never was one, and no runner exists. dir is removed before.
func Serve(dir string, listener net.Listener, grace time.Duration, expired func()) *Leases {
	l := &Leases{
		dir: dir, listener: listener, grace: grace, expired: expired,
		clients: map[net.Conn]*client{}, claims: map[string]string{},
		runners: map[Process]bool{},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = time.AfterFunc(grace, l.expire)
	go l.accept()
	return l
}

// Ready sends a line to the programs that have a lease, and to those that get one later.
func (l *Leases) Ready(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = line
	for connection := range l.clients {
		send(connection, line)
	}
}

// Close accepts no more leases and removes the directory. Existing connections stay open until the process ends, so
// that the programs notice the end of the process and not an earlier one.
func (l *Leases) Close() {
	unlock := lock(filepath.Dir(l.dir))
	defer unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
}

// close requires the lock of the parent directory and l.mu.
func (l *Leases) close() {
	if l.closed {
		return
	}
	l.closed = true
	l.idle.Stop()
	_ = os.RemoveAll(l.dir)
	_ = l.listener.Close()
	_ = os.Remove(filepath.Dir(l.dir)) // fails while other control planes use it
}

func (l *Leases) expire() {
	unlock := lock(filepath.Dir(l.dir))
	l.mu.Lock()
	expired := len(l.clients) == 0 && !l.closed
	if expired && l.runs() {
		expired = false
		l.idle.Reset(l.grace)
	}
	if expired {
		l.close()
	}
	l.mu.Unlock()
	unlock()
	if expired {
		l.expired()
	}
}

// lock locks a directory. Without the directory there is nothing to protect.
func lock(path string) (unlock func()) {
	dir, err := os.Open(path)
	if err != nil {
		return func() {}
	}
	for {
		if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return func() { _ = dir.Close() }
		}
	}
}

func (l *Leases) accept() {
	for {
		connection, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.mu.Lock()
		l.idle.Stop()
		l.clients[connection] = &client{claims: map[string]bool{}}
		if l.ready != nil {
			send(connection, l.ready)
		}
		l.mu.Unlock()
		go l.serve(connection)
	}
}

// serve answers the requests of a program until it ends.
func (l *Leases) serve(connection net.Conn) {
	for requests := bufio.NewScanner(connection); requests.Scan(); {
		var r Request
		if json.Unmarshal(requests.Bytes(), &r) != nil {
			break
		}
		l.mu.Lock()
		reply, err := json.Marshal(l.claim(l.clients[connection], r))
		if err == nil {
			send(connection, append(reply, '\n'))
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = connection.Close()
	delete(l.clients, connection)
	if len(l.clients) == 0 && !l.closed {
		l.idle.Reset(l.grace)
	}
}

// runs reports whether a runner exists. It requires l.mu.
func (l *Leases) runs() bool {
	for runner := range l.runners {
		if runner.exists() {
			return true
		}
		delete(l.runners, runner)
	}
	return false
}

// claim requires l.mu.
func (l *Leases) claim(holder *client, r Request) Reply {
	holder.name = r.Client
	if r.Runner != nil {
		l.runners[*r.Runner] = true
	}
	var reply Reply
	for name, value := range r.Claims {
		current, known := l.claims[name]
		if !known || current == value {
			continue
		}
		if other := l.other(holder, name); other != nil {
			return Reply{Conflict: name, Client: other.name}
		}
		if !holder.claims[name] {
			reply.Replaced = true
		}
	}
	for name, value := range r.Claims {
		l.claims[name] = value
		holder.claims[name] = true
	}
	return reply
}

// other returns a client besides holder that holds the claim.
func (l *Leases) other(holder *client, name string) *client {
	for _, c := range l.clients {
		if c != holder && c.claims[name] {
			return c
		}
	}
	return nil
}

func send(connection net.Conn, line []byte) {
	_ = connection.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = connection.Write(line)
}

// Inherited returns the listener that the parent process has passed as the first file after standard error.
func Inherited() (net.Listener, error) {
	const descriptor = 3
	file := os.NewFile(descriptor, "lease socket")
	if file == nil {
		return nil, fs.ErrInvalid
	}
	defer func() { _ = file.Close() }()
	syscall.CloseOnExec(descriptor)
	return net.FileListener(file)
}
