// SPDX-License-Identifier: Apache-2.0

package apis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
	rtime "trueup.dev/time"
)

var websiteConditions = apis.NewLivingConditionSet("ContentReady", "DeploymentReady")

// WebsiteStatus is the status of a custom resource.
type WebsiteStatus struct {
	apis.Status `json:",inline"`
	URL         string `json:"url,omitempty"`
}

func (s *WebsiteStatus) InitializeConditions(ctx context.Context) {
	conditions := websiteConditions.ManageWithContext(ctx, s)
	conditions.InitializeConditions()
}

func (s *WebsiteStatus) MarkContentRendered(ctx context.Context) {
	conditions := websiteConditions.ManageWithContext(ctx, s)
	conditions.MarkTrue("ContentReady", "Rendered", "")
}

func (s *WebsiteStatus) PropagateReplicas(ctx context.Context, ready, wanted int) {
	conditions := websiteConditions.ManageWithContext(ctx, s)
	if ready < wanted {
		conditions.MarkFalse("DeploymentReady", "Scaling", "%d of %d replicas are ready", ready, wanted)
		return
	}
	conditions.MarkTrue("DeploymentReady", "Available", "")
}

func printConditions(status apis.ConditionsAccessor) {
	for _, c := range status.GetConditions() {
		line := fmt.Sprintf("%s=%s (%s) %s", c.Type, c.Status, c.Reason, c.Message)
		fmt.Println(strings.TrimSpace(line))
	}
	fmt.Println("--")
}

// A living resource becomes Ready when all of its conditions are True, and is no longer ready if any of them is not.
func Example() {
	ctx := context.Background()
	status := &WebsiteStatus{}

	status.InitializeConditions(ctx)
	printConditions(status)

	status.MarkContentRendered(ctx)
	status.PropagateReplicas(ctx, 1, 2)
	printConditions(status)

	status.PropagateReplicas(ctx, 2, 2)
	printConditions(status)
	// Output:
	// ContentReady=Unknown (Initializing)
	// DeploymentReady=Unknown (Initializing)
	// Ready=Unknown (Initializing)
	// --
	// ContentReady=True (Rendered)
	// DeploymentReady=False (Scaling) 1 of 2 replicas are ready
	// Ready=False (Scaling) 1 of 2 replicas are ready
	// --
	// ContentReady=True (Rendered)
	// DeploymentReady=True (Available)
	// Ready=True (Ready)
	// --
}

func ExampleStatus() {
	ctx := rtime.StashNow(context.Background(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	status := &WebsiteStatus{URL: "https://example.com"}
	status.ObservedGeneration = 7
	status.MarkContentRendered(ctx)

	data, err := json.MarshalIndent(status, "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(data))
	// Output:
	// {
	//   "observedGeneration": 7,
	//   "conditions": [
	//     {
	//       "type": "ContentReady",
	//       "status": "True",
	//       "lastTransitionTime": "2026-03-01T12:00:00Z",
	//       "reason": "Rendered",
	//       "message": ""
	//     }
	//   ],
	//   "url": "https://example.com"
	// }
}

func ExampleNewLivingConditionSet() {
	set := apis.NewLivingConditionSet("DatabaseReady")
	status := &apis.Status{}

	manager := set.ManageWithContext(context.Background(), status)
	manager.MarkTrue("DatabaseReady", "Connected", "")
	printConditions(status)
	// Output:
	// DatabaseReady=True (Connected)
	// Ready=True (Ready)
	// --
}

func ExampleNewLivingConditionSetWithHappyReason() {
	set := apis.NewLivingConditionSetWithHappyReason("Serving", "DatabaseReady")
	status := &apis.Status{}

	manager := set.ManageWithContext(context.Background(), status)
	manager.MarkTrue("DatabaseReady", "Connected", "")
	printConditions(status)
	// Output:
	// DatabaseReady=True (Connected)
	// Ready=True (Serving)
	// --
}

func ExampleNewBatchConditionSet() {
	set := apis.NewBatchConditionSet("SnapshotTaken", "Uploaded")
	status := &apis.Status{}

	manager := set.ManageWithContext(context.Background(), status)
	manager.MarkTrue("SnapshotTaken", "Taken", "")
	manager.MarkUnknown("Uploaded", "Uploading", "%d%% done", 40)
	printConditions(status)

	manager.MarkTrue("Uploaded", "Uploaded", "")
	printConditions(status)
	// Output:
	// SnapshotTaken=True (Taken)
	// Succeeded=Unknown (Uploading) 40% done
	// Uploaded=Unknown (Uploading) 40% done
	// --
	// SnapshotTaken=True (Taken)
	// Succeeded=True (Succeeded)
	// Uploaded=True (Uploaded)
	// --
}

func ExampleNewBatchConditionSetWithHappyReason() {
	set := apis.NewBatchConditionSetWithHappyReason("Archived", "Uploaded")
	status := &apis.Status{}

	manager := set.ManageWithContext(context.Background(), status)
	manager.MarkTrue("Uploaded", "Uploaded", "")
	printConditions(status)
	// Output:
	// Succeeded=True (Archived)
	// Uploaded=True (Uploaded)
	// --
}

func ExampleConditionSet_ManageWithContext() {
	status := &WebsiteStatus{}
	manager := websiteConditions.ManageWithContext(context.Background(), status)

	// not part of the set, so it does not affect Ready
	manager.SetCondition(metav1.Condition{Type: "CertificateExpiring", Status: metav1.ConditionTrue, Reason: "Soon"})
	manager.MarkTrue("ContentReady", "Rendered", "")
	manager.MarkTrue("DeploymentReady", "Available", "")
	fmt.Println(manager.IsHappy(), manager.GetCondition("CertificateExpiring").Reason)

	fmt.Println(manager.ClearCondition("CertificateExpiring"), manager.GetCondition("CertificateExpiring"))
	fmt.Println(manager.ClearCondition("ContentReady"))
	// Output:
	// true Soon
	// <nil> nil
	// Clearing terminal conditions not implemented
}

func ExampleConditionIsTrue() {
	status := &WebsiteStatus{}
	status.MarkContentRendered(context.Background())
	fmt.Println(apis.ConditionIsTrue(status.GetCondition("ContentReady")))
	fmt.Println(apis.ConditionIsTrue(status.GetCondition("DeploymentReady")))
	// Output:
	// true
	// false
}

func ExampleConditionIsFalse() {
	status := &WebsiteStatus{}
	status.PropagateReplicas(context.Background(), 0, 2)
	fmt.Println(apis.ConditionIsFalse(status.GetCondition("DeploymentReady")))
	fmt.Println(apis.ConditionIsFalse(status.GetCondition("ContentReady")))
	// Output:
	// true
	// false
}

func ExampleConditionIsUnknown() {
	status := &WebsiteStatus{}
	status.MarkContentRendered(context.Background())
	fmt.Println(apis.ConditionIsUnknown(status.GetCondition("ContentReady")))
	fmt.Println(apis.ConditionIsUnknown(status.GetCondition("DeploymentReady")))
	// Output:
	// false
	// true
}
