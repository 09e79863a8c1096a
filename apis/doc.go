// SPDX-License-Identifier: Apache-2.0

// Package apis holds what the status of a custom resource is made of: the
// [Status] to embed, and a [ConditionSet] that derives one answer, is the
// resource ready, from the conditions that lead to it.
//
// # The status
//
//	type WebsiteStatus struct {
//		apis.Status `json:",inline"`
//		URL         string `json:"url,omitempty"`
//	}
//
// A resource reconciler fills in observedGeneration and writes the status when
// it changed.
//
// # The conditions
//
// A condition set names a happy condition and the dependents it is rolled up
// from. There are two kinds. A living set is for resources that are brought to a
// state and kept there; its happy condition is Ready:
//
//	var websiteConditions = apis.NewLivingConditionSet("ContentReady", "DeploymentReady")
//
// A batch set is for resources that run to completion; its happy condition is
// Succeeded:
//
//	var backupConditions = apis.NewBatchConditionSet("SnapshotTaken", "Uploaded")
//
// In both, the happy condition is True when all dependents are, False as soon as
// one is, with the reason and message of the latest failure, and Unknown
// otherwise. A dependent that is False outweighs one that is Unknown.
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
// Conditions that are set but not part of the set have no influence on the happy
// one. Use them for what is worth telling without making a resource unready.
//
// # The time of a change
//
// A condition whose status changed gets the time at which the request started as
// its lastTransitionTime, in whole seconds. A condition that only has a new reason
// or message keeps its time, and one that is set to what it was does not change at
// all: reconciling again without news leaves the status equal, and nothing is
// written.
package apis
