// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// Listener accepts connections in memory. It is safe for concurrent use.
type Listener struct {
	connections chan net.Conn
	closed      chan struct{}
	closeOnce   sync.Once
}

// NewListener returns a listener for a server in this process.
func NewListener() *Listener {
	return &Listener{connections: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener whatever the address is. It has the signature that http.Transport requires.
func (l *Listener) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	client, server := net.Pipe()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	select {
	case l.connections <- &connection{Conn: server, host: host}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.connections:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "kubelet" }

// connection is the server's side, with the host that the client wanted to reach.
type connection struct {
	net.Conn
	host string
}

// certificates issues and keeps a certificate for each host to which clients connect.
type certificates struct {
	issue func(host string) (tls.Certificate, error)

	mu     sync.Mutex
	byHost map[string]*tls.Certificate
}

// get has the signature of tls.Config.GetCertificate. The hello of a client that connects to an address has no name.
func (c *certificates) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := hello.ServerName
	if conn, ok := hello.Conn.(*connection); ok {
		host = conn.host
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if issued, ok := c.byHost[host]; ok {
		return issued, nil
	}
	issued, err := c.issue(host)
	if err != nil {
		return nil, err
	}
	c.byHost[host] = &issued
	return &issued, nil
}
