// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kube-apiserver may keep the address of a deleted Service allocated for a minute. Cases may use the address again.
func TestAddressesOfDeletedServicesAreFree(t *testing.T) {
	c := newCluster(t)
	service := func(name, address string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	// Addresses of this range are not assigned to Services that ask for none.
	given, created := service("given", "198.18.0.201"), service("created", "198.18.0.202")
	for _, address := range []string{given.Spec.ClusterIP, created.Spec.ClusterIP} {
		allocation := &networkingv1.IPAddress{
			ObjectMeta: metav1.ObjectMeta{
				Name: address,
				Labels: map[string]string{
					networkingv1.LabelIPAddressFamily: "IPv4", networkingv1.LabelManagedBy: "ipallocator.k8s.io",
				},
			},
			Spec: networkingv1.IPAddressSpec{
				ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: namespace, Name: "deleted"},
			},
		}
		if err := c.Create(t.Context(), allocation); err != nil {
			t.Fatal(err)
		}
	}
	runOnBoth(t, testCase{
		GivenObjects: []client.Object{given}, ExpectCreates: []client.Object{created},
	}, func(w *world) {
		w.must(w.Create(w.ctx, created.DeepCopy()))
	})
}
