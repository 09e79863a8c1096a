// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"

	"trueup.dev/apis"
)

// The conditions of a Website. Ready sums up the other four: it is True when all of them are.
const (
	ConditionReady = apis.ConditionReady
	// ContentReady: the theme is known and all pages are rendered, in every language.
	ConditionContentReady = "ContentReady"
	// DeploymentReady: every web server runs the current content.
	ConditionDeploymentReady = "DeploymentReady"
	// ServiceReady: the Service has an address.
	ConditionServiceReady = "ServiceReady"
	// RecordReady: the domain points at that address.
	ConditionRecordReady = "RecordReady"
)

// Labels and annotations on what belongs to a Website.
const (
	// LabelWebsite is on every child; its value is the name of the Website.
	LabelWebsite = "demo.trueup.dev/website"
	// AnnotationContentHash is on the pod template: when the content changes, it changes, and the web servers roll over.
	AnnotationContentHash = "demo.trueup.dev/content-hash"
	// AnnotationProtected on a Website, with the value "true", makes the webhook refuse to delete it.
	AnnotationProtected = "demo.trueup.dev/protected"
	// Finalizer keeps a deleted Website until its DNS record is gone.
	Finalizer = "demo.trueup.dev/dns-record"
)

var conditions = apis.NewLivingConditionSet(
	ConditionContentReady,
	ConditionDeploymentReady,
	ConditionServiceReady,
	ConditionRecordReady,
)

// InitializeConditions sets the conditions that are missing to Unknown. The ResourceReconciler calls it before every
// pass.
func (s *WebsiteStatus) InitializeConditions(ctx context.Context) {
	s.ConditionManager(ctx).InitializeConditions()
}

// ConditionManager sets conditions and keeps Ready in line with them.
func (s *WebsiteStatus) ConditionManager(ctx context.Context) apis.ConditionManager {
	return conditions.ManageWithContext(ctx, s)
}
