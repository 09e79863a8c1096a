// SPDX-License-Identifier: Apache-2.0

// Package controller reconciles Websites. Read [NewWebsiteReconciler] first: it lists the steps of a reconcile in
// order. Each step has its own file:
//
//	theme.go       read and track a ConfigMap that is not owned, and pass it on
//	content.go     a child: the ConfigMap with the rendered pages
//	languages.go   a set of children: one ConfigMap per language
//	deployment.go  a child whose status determines the status of its parent
//	service.go     a child that provides a value for a later step
//	record.go      an external object, cleaned up with a finalizer
//	former.go      a child of an earlier release, which is no longer needed
//
// Steps define the desired state and its effect on the status. The framework creates, updates, deletes, owns and
// watches children, retries, and writes the status. Steps pass values to later steps in a stash, which lives for one
// reconcile.
package controller

import (
	"context"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/reconcilers"
)

// NewWebsiteReconciler returns the reconciler of the kind Website. It publishes sites with records, and reconciles each
// published site again every recheck, because the external system sends no events.
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
			FormerStyleReconciler(),
		},
		Config: c,
	}
}

// markChildError sets a condition to the error of the API server for a child.
func markChildError(ctx context.Context, site *websitev1.Website, condition string, err error) {
	site.Status.ConditionManager(ctx).MarkFalse(condition, string(apierrs.ReasonForError(err)), "%s", err)
}
