// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// ServiceLoadBalancer is the controller that gives addresses to services of type LoadBalancer. It has the name of the
	// controller in cloud-controller-manager with this duty.
	ServiceLoadBalancer = "service-lb-controller"

	// IngressStatus is the controller that gives an address to each Ingress.
	IngressStatus = "ingress-status-controller"
)

// The addresses are reserved for documentation (RFC 5737): no packet that is sent to them arrives anywhere.
var (
	loadBalancerRange = netip.MustParsePrefix("203.0.113.0/24")
	ingressAddress    = "198.51.100.1"
)

// own are the controllers that kube-controller-manager does not have.
var own = []descriptor{
	{name: ServiceLoadBalancer, alias: "service", client: ServiceLoadBalancer, build: newServiceLoadBalancers},
	{name: IngressStatus, client: IngressStatus, build: newIngressStatus},
	{name: VolumeProvisioner, client: VolumeProvisioner, build: newVolumeProvisioner},
}

// loadBalancers assigns addresses to services of type LoadBalancer without a class.
type loadBalancers struct {
	setup
	services corelisters.ServiceLister
}

func newServiceLoadBalancers(_ context.Context, s setup) (runFunc, error) {
	services := s.informers.Core().V1().Services()
	l := &loadBalancers{setup: s, services: services.Lister()}
	r := newReconciler(l.sync)
	return r.run, r.watch(services.Informer(), r.enqueue)
}

func (l *loadBalancers) sync(ctx context.Context, key cache.ObjectName) error {
	service, err := l.services.Services(key.Namespace).Get(key.Name)
	if err != nil {
		return err
	}
	// The API server clears the status of a service whose type changes.
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.LoadBalancerClass != nil ||
		service.DeletionTimestamp != nil || len(service.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	address, err := l.freeAddress(ctx, service)
	if err != nil {
		return err
	}
	service = service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
		{IP: address, IPMode: new(corev1.LoadBalancerIPModeVIP)},
	}
	_, err = l.client.CoreV1().Services(key.Namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{})
	return err
}

// freeAddress returns the address that the service asks for, or the first one that no other service has.
func (l *loadBalancers) freeAddress(ctx context.Context, service *corev1.Service) (string, error) {
	if requested, err := netip.ParseAddr(service.Spec.LoadBalancerIP); err == nil {
		return requested.String(), nil
	}
	// The cache may not yet have the status that was written last.
	live, err := l.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, other := range live.Items {
		for _, ingress := range other.Status.LoadBalancer.Ingress {
			taken[ingress.IP] = true
		}
	}
	for address := loadBalancerRange.Addr().Next(); loadBalancerRange.Contains(address.Next()); address = address.Next() {
		if !taken[address.String()] {
			return address.String(), nil
		}
	}
	return "", errors.New("no free address in " + loadBalancerRange.String())
}

// ingressStatus gives an address to each Ingress that no other controller is responsible for.
type ingressStatus struct {
	setup
	ingresses networkinglisters.IngressLister
	classes   networkinglisters.IngressClassLister
}

func newIngressStatus(_ context.Context, s setup) (runFunc, error) {
	ingresses, classes := s.informers.Networking().V1().Ingresses(), s.informers.Networking().V1().IngressClasses()
	i := &ingressStatus{setup: s, ingresses: ingresses.Lister(), classes: classes.Lister()}
	r := newReconciler(i.sync)
	return r.run, errors.Join(
		r.watch(classes.Informer(), func(any) {}),
		r.watch(ingresses.Informer(), r.enqueue),
	)
}

func (i *ingressStatus) sync(ctx context.Context, key cache.ObjectName) error {
	ingress, err := i.ingresses.Ingresses(key.Namespace).Get(key.Name)
	if err != nil {
		return err
	}
	if ingress.DeletionTimestamp != nil || len(ingress.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	if name := ingress.Spec.IngressClassName; name != nil {
		if _, err := i.classes.Get(*name); err == nil || !apierrors.IsNotFound(err) {
			return err // a class exists, so its controller is responsible
		}
	}
	ingress = ingress.DeepCopy()
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: ingressAddress}}
	_, err = i.client.NetworkingV1().Ingresses(key.Namespace).UpdateStatus(ctx, ingress, metav1.UpdateOptions{})
	return err
}
