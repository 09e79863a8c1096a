// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRetry(t *testing.T) {
	errAway := errors.New("connection refused")
	for name, tc := range map[string]struct {
		succeeds, gives int // the attempt that succeeds, and the failure after which failed returns false
		timeout         time.Duration
		want            error
		waits           []time.Duration
	}{
		"succeeds at once":                {succeeds: 1, waits: []time.Duration{0}},
		"backs off up to 10 s":            {succeeds: 7, waits: []time.Duration{0, 500e6, 1e9, 2e9, 4e9, 8e9, 10e9}},
		"stops when failed returns false": {gives: 2, want: errAway, waits: []time.Duration{0, 500e6}},
		"stops with its context":          {timeout: time.Second, want: errAway, waits: []time.Duration{0, 500e6}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.timeout)
					defer cancel()
				}
				var waits []time.Duration
				last := time.Now()
				err := Retry(ctx, func(context.Context) error {
					waits, last = append(waits, time.Since(last)), time.Now()
					if len(waits) == tc.succeeds {
						return nil
					}
					return errAway
				}, func(_ error, failures int) bool { return failures != tc.gives })
				if !errors.Is(err, tc.want) {
					t.Errorf("error = %v, want %v", err, tc.want)
				}
				if diff := cmp.Diff(tc.waits, waits); diff != "" {
					t.Errorf("waits before the attempts (-want +got):\n%s", diff)
				}
			})
		})
	}
}
