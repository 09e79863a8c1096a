// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/internal/manifest"
	"trueup.dev/reconcilers"
)

// addressStash passes the address of the Service. It is empty while the Service has no address.
var addressStash = reconcilers.NewStasher[string]("address")

// ServiceReconciler manages the Service in front of the web servers.
func ServiceReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.Service, *corev1.ServiceList]{
		Name: "Service",
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.Service, error) {
			return manifest.Service(site), nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Service) {
			current.Labels = reconcilers.MergeMaps(current.Labels, desired.Labels)
			current.Spec.Selector, current.Spec.Ports = desired.Spec.Selector, desired.Spec.Ports
		},
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, child *corev1.Service, err error) {
			conditions := site.Status.ConditionManager(ctx)
			switch {
			case err != nil:
				markChildError(ctx, site, websitev1.ConditionServiceReady, err)
			case child.Spec.ClusterIP == "":
				conditions.MarkUnknown(websitev1.ConditionServiceReady, "NoAddress", "the Service has no address yet")
			default:
				conditions.MarkTrue(websitev1.ConditionServiceReady, "AddressAssigned", "")
				addressStash.Store(ctx, child.Spec.ClusterIP)
			}
		},
	}
}
