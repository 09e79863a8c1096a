// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"

	"trueup.dev/external"
)

func deleteBucket(ctx context.Context, name string) {
	if external.Announce(ctx, "delete bucket %s", name) {
		return // in a plan
	}
	fmt.Println("deleting bucket", name)
}

func ExampleAnnounce() {
	deleteBucket(context.Background(), "photos")
	// Output: deleting bucket photos
}

func ExampleInPlan() {
	ctx := context.Background() // of a set-up function
	if !external.InPlan(ctx) {
		fmt.Println("connecting to the cloud")
	}
	// Output: connecting to the cloud
}
