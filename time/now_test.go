// SPDX-License-Identifier: Apache-2.0

package time_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	rtime "trueup.dev/time"
)

func TestRetrieveNow(t *testing.T) {
	first := time.Date(2026, 3, 1, 12, 0, 0, 987654321, time.UTC)
	second := first.Add(time.Hour)

	tests := map[string]struct {
		reason string
		stash  []time.Time
		want   time.Time
	}{
		"Stashed": {
			reason: "a stashed time is returned to the nanosecond",
			stash:  []time.Time{first},
			want:   first,
		},
		"FirstWins": {
			reason: "the time of a test is not replaced by the time of the root reconciler",
			stash:  []time.Time{first, second},
			want:   first,
		},
		"ZeroTime": {
			reason: "the zero time is a stashed time like any other",
			stash:  []time.Time{{}, second},
			want:   time.Time{},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			for _, now := range tt.stash {
				ctx = rtime.StashNow(ctx, now)
			}
			if diff := cmp.Diff(tt.want, rtime.RetrieveNow(ctx)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.want, rtime.RetrieveTime(ctx)); diff != "" { //nolint:govet // tests the deprecated name
				t.Errorf("deprecated RetrieveTime: %s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestRetrieveNowWithoutStash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := rtime.RetrieveNow(t.Context())
		time.Sleep(time.Minute) // returns immediately: the clock of the bubble is fake
		after := rtime.RetrieveNow(t.Context())
		if diff := cmp.Diff(time.Minute, after.Sub(before)); diff != "" {
			t.Errorf("time passed between two calls (-want +got):\n%s", diff)
		}
	})
}

func TestStashNowReturnsTheSameContext(t *testing.T) {
	ctx := rtime.StashNow(context.Background(), time.Now())
	if again := rtime.StashNow(ctx, time.Now()); again != ctx {
		t.Error("a context with a time was wrapped again")
	}
}
