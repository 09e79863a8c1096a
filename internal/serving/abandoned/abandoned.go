// SPDX-License-Identifier: Apache-2.0

// Package abandoned recognizes the kubeconfigs of servers that were killed.
package abandoned

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// contextPrefix is the prefix of the contexts in kubeconfigs of this project: trueup-controlplane, trueup-memory.
const contextPrefix = "trueup-"

// dialTimeout limits how long an address on this machine may take to accept a connection.
const dialTimeout = time.Second

// Kubeconfig reports whether a file is the kubeconfig of a server of this project that has ended: the system refuses
// connections to its address. Any other error means that the server may still run.
func Kubeconfig(ctx context.Context, file string) bool {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil || !strings.HasPrefix(config.CurrentContext, contextPrefix) {
		return false
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return false
	}
	address, err := url.Parse(config.Clusters[current.Cluster].Server)
	if err != nil {
		return false
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = connection.Close()
	return false
}
