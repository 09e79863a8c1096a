// SPDX-License-Identifier: Apache-2.0

package memcached

import (
	"context"
	"hash/crc32"
	"net"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
)

// servers spreads keys over addresses as a [memcache.ServerList] does. Unlike ServerList it does not resolve host
// names: the client resolves them for each connection.
type servers []net.Addr

var _ memcache.ServerSelector = servers(nil)

func newServers(addrs []string) servers {
	s := make(servers, len(addrs))
	for i, addr := range addrs {
		s[i] = address{network: networkOf(addr), text: addr}
	}
	return s
}

// PickServer implements [memcache.ServerSelector].
func (s servers) PickServer(key string) (net.Addr, error) {
	return s[crc32.ChecksumIEEE([]byte(key))%uint32(len(s))], nil
}

// Each implements [memcache.ServerSelector].
func (s servers) Each(do func(net.Addr) error) error {
	for _, addr := range s {
		if err := do(addr); err != nil {
			return err
		}
	}
	return nil
}

// address is an address as the user wrote it.
type address struct{ network, text string }

func (a address) Network() string { return a.network }
func (a address) String() string  { return a.text }

func networkOf(addr string) string {
	if strings.Contains(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// checkAddress returns an error if the form of an address is invalid.
func checkAddress(addr string) error {
	if networkOf(addr) == "unix" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port) // looks up port names in a file
	}
	return err
}
