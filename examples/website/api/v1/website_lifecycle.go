// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"

	"trueup.dev/apis"
)

// The conditions of a Website. Ready is True if the other four are.
const (
	ConditionReady = apis.ConditionReady
	// ContentReady: the theme exists and all pages are rendered, in every language.
	ConditionContentReady = "ContentReady"
	// DeploymentReady: every web server runs the current content.
	ConditionDeploymentReady = "DeploymentReady"
	// ServiceReady: the Service has an address.
	ConditionServiceReady = "ServiceReady"
	// RecordReady: the domain points at that address.
	ConditionRecordReady = "RecordReady"
)

// Labels and annotations on the children of a Website.
const (
	// LabelWebsite is on every child; its value is the name of the Website.
	LabelWebsite = "demo.trueup.dev/website"
	// AnnotationContentHash is on the pod template. It changes with the content, so that the web servers roll over.
	AnnotationContentHash = "demo.trueup.dev/content-hash"
	// AnnotationProtected on a Website, with the value "true", makes the webhook reject its deletion.
	AnnotationProtected = "demo.trueup.dev/protected"
	// Finalizer keeps a Website that is being deleted until its DNS record is withdrawn.
	Finalizer = "demo.trueup.dev/dns-record"
)

var conditions = apis.NewLivingConditionSet(
	ConditionContentReady, ConditionDeploymentReady, ConditionServiceReady, ConditionRecordReady,
)

// InitializeConditions sets missing conditions to Unknown. The ResourceReconciler calls it before every reconcile.
func (s *WebsiteStatus) InitializeConditions(ctx context.Context) {
	s.ConditionManager(ctx).InitializeConditions()
}

// ConditionManager sets conditions and updates Ready.
func (s *WebsiteStatus) ConditionManager(ctx context.Context) apis.ConditionManager {
	return conditions.ManageWithContext(ctx, s)
}
