// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region prune
func SiteReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.Prune[*websitev1.Website]{
		Inventory: "websites.example.com/inventory",
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			PagesReconciler(),
			&reconcilers.IfThen[*websitev1.Website]{
				If:   func(_ context.Context, site *websitev1.Website) bool { return site.Spec.Domain != "" },
				Then: DomainReconciler(), // its child is deleted when the domain is removed
			},
		},
	}
}

// endregion

// DomainReconciler has its child in another namespace.
func DomainReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name:      "Domain",
		Finalizer: "websites.example.com/dns",
		ListOptions: func(context.Context, *websitev1.Website) []client.ListOption {
			return []client.ListOption{client.InNamespace("dns")}
		},
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Namespace == "dns" && child.Name == site.Name
		},
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "dns", Name: site.Name},
				Data:       map[string]string{"domain": site.Spec.Domain},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *corev1.ConfigMap, err error,
		) error {
			return err
		},
	}
}

func Example_prune() {
	cluster := newCluster(newSite())
	site := reconcilers.Sequence[*websitev1.Website]{RenderReconciler(), SiteReconciler()}
	reconcileOnce(cluster, site)

	stored := newSite()
	_ = cluster.Get(context.Background(), client.ObjectKeyFromObject(stored), stored)
	fmt.Println(stored.Annotations["websites.example.com/inventory"])
	stored.Spec.Domain = ""
	_ = cluster.Update(context.Background(), stored)

	fmt.Println("without a domain:")
	reconcileOnce(cluster, site)
	// Output:
	// event: Normal Created: Created ConfigMap "bakery-pages"
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/dns"
	// event: Normal Created: Created ConfigMap "bakery"
	// {"kinds":["ConfigMap"],"namespaces":["dns"],"finalizers":["websites.example.com/dns"]}
	// without a domain:
	// event: Normal Deleted: Deleted ConfigMap "bakery"
	// again in 10s
}
