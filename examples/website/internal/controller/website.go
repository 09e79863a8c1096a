// SPDX-License-Identifier: Apache-2.0

// Package controller keeps what belongs to a Website in line with it. Read [NewWebsiteReconciler] first: it lists the
// steps of a pass in their order. Each step is a file of its own:
//
//	theme.go       look up a ConfigMap that is not ours, follow its changes, hand it on
//	content.go     a child: the ConfigMap with the rendered pages
//	languages.go   a set of children: one ConfigMap per language
//	deployment.go  a child whose own status decides about ours
//	service.go     a child that yields a value for a later step
//	record.go      something outside the cluster, cleaned up behind a finalizer
//
// Steps say what should be and what it means for the status. Creating, updating, deleting, owning, watching, retrying
// and writing the status are done for them. What one step finds out for the next travels in a stash that lives for one
// pass.
package controller

import (
	"context"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/reconcilers"
)

// +kubebuilder:rbac:groups=demo.trueup.dev,resources=websites,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=demo.trueup.dev,resources=websites/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=demo.trueup.dev,resources=websites/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// NewWebsiteReconciler returns the reconciler of the kind Website. It publishes sites with records, and asks that
// external system again every recheck whether its answer still stands.
func NewWebsiteReconciler(
	c reconcilers.Config, records dns.Provider, recheck time.Duration,
) *reconcilers.ResourceReconciler[*websitev1.Website] {
	return &reconcilers.ResourceReconciler[*websitev1.Website]{
		Name: "Website",
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			ThemeReconciler(),
			ContentReconciler(),
			LanguagesReconciler(),
			DeploymentReconciler(),
			ServiceReconciler(),
			RecordReconciler(records, recheck),
		},
		Config: c,
	}
}

// markChildError notes on the status why a child is not as desired, in the words of the API.
func markChildError(ctx context.Context, site *websitev1.Website, condition string, err error) {
	site.Status.ConditionManager(ctx).MarkFalse(condition, string(apierrs.ReasonForError(err)), "%s", err)
}
