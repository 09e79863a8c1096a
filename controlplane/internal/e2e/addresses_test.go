// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestLoadBalancerGetsAnAddress(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	services := p.client.CoreV1().Services(namespace)
	address := func(name string) string {
		var ip string
		eventually(t, waitLimit, "address of "+name, func(ctx context.Context) error {
			service, err := services.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if ingress := service.Status.LoadBalancer.Ingress; len(ingress) == 1 {
				ip = ingress[0].IP
				return nil
			}
			return fmt.Errorf("status %+v", service.Status)
		})
		return ip
	}
	taken := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		p.apply(t, namespace, `{apiVersion: v1, kind: Service, metadata: {name: `+name+`},
			spec: {type: LoadBalancer, ports: [{port: 80}]}}`)
	}
	for _, name := range []string{"a", "b", "c"} {
		ip := address(name)
		if taken[ip] || !netip.MustParsePrefix("203.0.113.0/24").Contains(netip.MustParseAddr(ip)) {
			t.Errorf("address of %s = %s, want a free one in 203.0.113.0/24", name, ip)
		}
		taken[ip] = true
	}
	p.apply(t, namespace, `{apiVersion: v1, kind: Service, metadata: {name: requested},
		spec: {type: LoadBalancer, loadBalancerIP: 198.51.100.9, ports: [{port: 80}]}}`)
	if ip := address("requested"); ip != "198.51.100.9" {
		t.Errorf("address = %s, want the requested one", ip)
	}
	if _, err := services.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, "address removed", func(ctx context.Context) error {
		service, err := services.Get(ctx, "a", metav1.GetOptions{})
		if err == nil && len(service.Status.LoadBalancer.Ingress) > 0 {
			err = fmt.Errorf("status %+v", service.Status)
		}
		return err
	})
}

// Services with a class and Ingresses of an existing class belong to other controllers. The one that is created last
// gets its address when the others would have theirs.
func TestAddressesOfOtherControllersAreLeftAlone(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	namespace := p.namespace(t)
	ingress := func(name, class string) string {
		return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ` + name + `}, spec: {` + class + `
			defaultBackend: {service: {name: test, port: {number: 80}}}}}`
	}
	p.apply(t, "", `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: foreign},
		spec: {controller: example.com/ingress}}`)
	p.apply(t, namespace, ingress("foreign", "ingressClassName: foreign,"))
	p.apply(t, namespace, ingress("own", ""))
	p.apply(t, namespace, ingress("unknown-class", "ingressClassName: nginx,"))
	p.apply(t, namespace, `{apiVersion: v1, kind: Service, metadata: {name: foreign},
		spec: {type: LoadBalancer, loadBalancerClass: example.com/lb, ports: [{port: 80}]}}`)
	p.apply(t, namespace, `{apiVersion: v1, kind: Service, metadata: {name: own},
		spec: {type: LoadBalancer, ports: [{port: 80}]}}`)
	ingresses, services := p.client.NetworkingV1().Ingresses(namespace), p.client.CoreV1().Services(namespace)
	for _, name := range []string{"own", "unknown-class"} {
		eventually(t, waitLimit, "ingress "+name, func(ctx context.Context) error {
			got, err := ingresses.Get(ctx, name, metav1.GetOptions{})
			if err == nil && (len(got.Status.LoadBalancer.Ingress) != 1 ||
				got.Status.LoadBalancer.Ingress[0].IP != "198.51.100.1") {
				err = fmt.Errorf("status %+v", got.Status)
			}
			return err
		})
	}
	eventually(t, waitLimit, "service own", func(ctx context.Context) error {
		got, err := services.Get(ctx, "own", metav1.GetOptions{})
		if err == nil && len(got.Status.LoadBalancer.Ingress) != 1 {
			err = fmt.Errorf("status %+v", got.Status)
		}
		return err
	})
	foreignIngress, err := ingresses.Get(t.Context(), "foreign", metav1.GetOptions{})
	if err != nil || len(foreignIngress.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("foreign ingress = %+v, %v, want no address", foreignIngress.Status, err)
	}
	var foreignService *corev1.Service
	foreignService, err = services.Get(t.Context(), "foreign", metav1.GetOptions{})
	if err != nil || len(foreignService.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("foreign service = %+v, %v, want no address", foreignService.Status, err)
	}
}
