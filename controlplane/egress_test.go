// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func egressWith(t *testing.T, services ...*corev1.Service) *egress {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, service := range services {
		if err := indexer.Add(service); err != nil {
			t.Fatal(err)
		}
	}
	return &egress{services: corelisters.NewServiceLister(indexer)}
}

func service(name, clusterIP, address string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: clusterIP},
	}
	if address != "" {
		s.Annotations = map[string]string{AddressAnnotation: address}
	}
	return s
}

func TestEgressResolvesLoopbackOnly(t *testing.T) {
	e := egressWith(t,
		service("local", "198.18.0.2", "127.0.0.1:9443"), service("local6", "198.18.0.3", "[::1]:9443"),
		service("plain", "198.18.0.4", ""), service("remote", "198.18.0.5", "10.0.0.1:443"),
		service("name", "198.18.0.6", "localhost:9443"), service("none", "None", "127.0.0.1:1"),
	)
	tests := map[string]struct{ want, wantError string }{
		"127.0.0.1:443":          {want: "127.0.0.1:443"},
		"127.8.9.10:443":         {want: "127.8.9.10:443"},
		"[::1]:443":              {want: "[::1]:443"},
		"[::ffff:127.0.0.1]:443": {want: "[::ffff:127.0.0.1]:443"},
		"localhost:443":          {want: "127.0.0.1:443"},
		"198.18.0.2:443":         {want: "127.0.0.1:9443"},
		"198.18.0.3:443":         {want: "[::1]:9443"},
		"198.18.0.4:443":         {wantError: "nothing serves service shop/plain"},
		"198.18.0.5:443":         {wantError: "not a loopback address"},
		"198.18.0.6:443":         {wantError: "must be a loopback address with a port"},
		"198.18.9.9:443":         {wantError: "no service has the address 198.18.9.9"},
		"198.19.0.1:80":          {wantError: "pods are simulated"},
		"192.0.2.1:10250":        {wantError: "connects to loopback addresses only"},
		"10.0.0.1:443":           {wantError: "connects to loopback addresses only"},
		"[::ffff:10.0.0.1]:443":  {wantError: "connects to loopback addresses only"},
		"[fe80::1%lo]:443":       {wantError: "connects to loopback addresses only"},
		"0.0.0.0:443":            {wantError: "connects to loopback addresses only"},
		"example.com:443":        {wantError: "looks up no names"},
		"x.localhost:443":        {wantError: "looks up no names"},
		"127.1:443":              {wantError: "looks up no names"},
		"without-port":           {wantError: "missing port"},
	}
	for address, test := range tests {
		got, err := e.resolve(address)
		switch {
		case got != test.want:
			t.Errorf("resolve(%s) = %q, want %q", address, got, test.want)
		case test.wantError == "" && err != nil:
			t.Errorf("resolve(%s): %v", address, err)
		case test.wantError != "" && (err == nil || !strings.Contains(err.Error(), test.wantError)):
			t.Errorf("resolve(%s): error %v, want %q", address, err, test.wantError)
		}
	}
}

func TestEgressConnectsToTheAddressOfAService(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	e := egressWith(t, service("local", "198.18.0.2", listener.Addr().String()))
	conn, err := e.dial(t.Context(), "tcp", "198.18.0.2:443")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.RemoteAddr().String(); got != listener.Addr().String() {
		t.Errorf("connected to %s, want %s", got, listener.Addr())
	}
}
