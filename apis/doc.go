// SPDX-License-Identifier: Apache-2.0

// Package apis provides the building blocks for the status of a custom resource: the [Status] to embed, and a
// [ConditionSet] that derives whether the resource is ready from other conditions.
//
// # The status
//
//	type WebsiteStatus struct {
//		apis.Status `json:",inline"`
//		URL         string `json:"url,omitempty"`
//	}
//
// A resource reconciler sets observedGeneration and writes the status if it changed.
//
// # The conditions
//
// A condition set names a happy condition and the dependents from which it is derived. A living set is for resources
// that reach a state and stay in it; its happy condition is Ready:
//
//	var websiteConditions = apis.NewLivingConditionSet("ContentReady", "DeploymentReady")
//
// A batch set is for resources that run to completion; its happy condition is
// Succeeded:
//
//	var backupConditions = apis.NewBatchConditionSet("SnapshotTaken", "Uploaded")
//
// In both, the happy condition is True if all dependents are True. It is False if any dependent is False, with the
// reason and message of the latest failure. Otherwise it is Unknown. False takes precedence over Unknown.
//
// Give the status type a method that starts all conditions as Unknown. The
// resource reconciler calls it before any other step:
//
//	func (s *WebsiteStatus) InitializeConditions(ctx context.Context) {
//		conditions := websiteConditions.ManageWithContext(ctx, s)
//		conditions.InitializeConditions()
//	}
//
// and one method per thing that reconcilers observe:
//
//	func (s *WebsiteStatus) MarkContentRendered(ctx context.Context) {
//		conditions := websiteConditions.ManageWithContext(ctx, s)
//		conditions.MarkTrue("ContentReady", "Rendered", "")
//	}
//
// Conditions outside the set do not affect the happy condition. Use them for information that does not make a resource
// unready.
//
// # The time of a change
//
// A condition whose status changed gets the time at which the request started as its lastTransitionTime, in whole
// seconds. A condition that only has a new reason or message keeps its time, and a condition that is set to the same
// values does not change. Reconciling again without a change leaves the status equal, so it is not written.
package apis
