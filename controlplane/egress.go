// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"

	"trueup.dev/controlplane/internal/podrunner"
)

// AddressAnnotation is the annotation of a Service with the loopback address and port of the program that serves it,
// for example 127.0.0.1:9443. Webhooks and APIServices that refer to the Service reach this program.
const AddressAnnotation = "trueup.dev/address"

var servicePrefix = netip.MustParsePrefix(serviceRange)

// egress connects kube-apiserver to webhooks, aggregated API servers, and what it is asked to proxy. It connects to
// loopback addresses only, and looks up no names.
type egress struct{ services corelisters.ServiceLister }

// dial has the signature that http.Transport requires.
func (e *egress) dial(ctx context.Context, network, address string) (net.Conn, error) {
	target, err := e.resolve(address)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, target)
}

// resolve returns the loopback address for an address, or an error that describes what to do.
func (e *egress) resolve(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if host == "localhost" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "", fmt.Errorf("the control plane looks up no names and connects to loopback addresses only, got %s: "+
			"use localhost or 127.0.0.1", address)
	case ip.Unmap().IsLoopback():
		return address, nil
	case servicePrefix.Contains(ip.Unmap()):
		return e.resolveService(ip.Unmap())
	case podrunner.IsPodAddress(ip.Unmap()):
		return "", fmt.Errorf("pods are simulated: nothing listens on the pod address %s", address)
	}
	return "", fmt.Errorf("the control plane connects to loopback addresses only, got %s", address)
}

func (e *egress) resolveService(ip netip.Addr) (string, error) {
	services, err := e.services.List(labels.Everything())
	if err != nil {
		return "", err
	}
	for _, service := range services {
		if service.Spec.ClusterIP == ip.String() {
			return serviceAddress(service)
		}
	}
	return "", fmt.Errorf("no service has the address %s", ip)
}

func serviceAddress(service *corev1.Service) (string, error) {
	name := service.Namespace + "/" + service.Name
	value, ok := service.Annotations[AddressAnnotation]
	if !ok {
		return "", fmt.Errorf("nothing serves service %s, because pods are simulated: set its annotation %s to the address "+
			"of the program on this machine that does, for example 127.0.0.1:9443", name, AddressAnnotation)
	}
	address, err := netip.ParseAddrPort(value)
	if err == nil && !address.Addr().Unmap().IsLoopback() {
		err = errors.New("not a loopback address")
	}
	if err != nil {
		return "", fmt.Errorf("service %s: annotation %s must be a loopback address with a port, for example "+
			"127.0.0.1:9443, got %q: %w", name, AddressAnnotation, value, err)
	}
	return address.String(), nil
}
