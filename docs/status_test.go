// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/apis"
	rtime "trueup.dev/time"
)

// region status-type
type BackupStatus struct {
	apis.Status `json:",inline"` // observedGeneration and conditions

	Size int64 `json:"size,omitempty"`
}

// endregion

// region status-conditions
// Succeeded summarizes the other two.
var backupConditions = apis.NewBatchConditionSet("SnapshotTaken", "Uploaded")

func (s *BackupStatus) InitializeConditions(ctx context.Context) {
	backupConditions.ManageWithContext(ctx, s).InitializeConditions()
}

func (s *BackupStatus) MarkUploaded(ctx context.Context, size int64) {
	s.Size = size
	backupConditions.ManageWithContext(ctx, s).MarkTrue("Uploaded", "Uploaded", "")
}

func (s *BackupStatus) MarkUploadFailed(ctx context.Context, err error) {
	backupConditions.ManageWithContext(ctx, s).MarkFalse("Uploaded", "UploadFailed", "%s", err)
}

// endregion

func Example_conditions() {
	ctx := context.Background()
	status := &BackupStatus{}
	status.InitializeConditions(ctx)
	backupConditions.ManageWithContext(ctx, status).MarkTrue("SnapshotTaken", "Taken", "")
	status.MarkUploadFailed(ctx, fmt.Errorf("disk full"))
	fmt.Println(status.GetCondition("Succeeded").Status, status.GetCondition("Succeeded").Message)
	status.MarkUploaded(ctx, 17)
	fmt.Println(status.GetCondition("Succeeded").Status)
	// Output:
	// False disk full
	// True
}

func Example_time() {
	// region status-time
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// a root reconciler does this; if a test does it first, its time is kept
	ctx := rtime.StashNow(context.Background(), at)

	status := &BackupStatus{}
	status.InitializeConditions(ctx)
	status.MarkUploaded(ctx, 17)
	fmt.Println(status.GetCondition("Uploaded").LastTransitionTime.Equal(&metav1.Time{Time: rtime.RetrieveNow(ctx)}))
	// endregion
	// Output:
	// true
}
