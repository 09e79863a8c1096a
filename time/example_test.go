// SPDX-License-Identifier: Apache-2.0

package time_test

import (
	"context"
	"fmt"
	"time"

	rtime "trueup.dev/time"
)

func ExampleStashNow() {
	// a test stashes a time
	ctx := rtime.StashNow(context.Background(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

	// the root reconciler also stashes a time, but the first one stays
	ctx = rtime.StashNow(ctx, time.Now())

	fmt.Println(rtime.RetrieveNow(ctx))
	// Output: 2026-03-01 12:00:00 +0000 UTC
}

func ExampleRetrieveNow() {
	checkCertificate := func(ctx context.Context, notAfter time.Time) string {
		if left := notAfter.Sub(rtime.RetrieveNow(ctx)); left < 24*time.Hour {
			return "renew, expires in " + left.String()
		}
		return "fine"
	}

	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ctx := rtime.StashNow(context.Background(), noon)
	fmt.Println(checkCertificate(ctx, noon.Add(time.Hour)))
	fmt.Println(checkCertificate(ctx, noon.AddDate(1, 0, 0)))
	// Output:
	// renew, expires in 1h0m0s
	// fine
}
