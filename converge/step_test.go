// SPDX-License-Identifier: Apache-2.0

package converge_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
)

func TestStep_performsInACluster(t *testing.T) {
	var done []string
	note := func(name string, err error) converge.Step {
		return converge.Do(name, func(context.Context, client.Client) error {
			done = append(done, name)
			return err
		})
	}
	wait := func(_ context.Context, atLeast time.Duration) error {
		done = append(done, atLeast.String())
		return nil
	}
	for _, tc := range []struct {
		reason string
		step   converge.Step
		want   []string
		err    string
	}{
		{"an action", note("a", nil), []string{"a"}, ""},
		{"waits are those of the caller", converge.Settle(), []string{"0s"}, ""},
		{"the parts in their order", converge.SleepThen(time.Hour, note("a", nil)), []string{"1h0m0s", "a", "0s"}, ""},
		{
			"nothing after an error", converge.SleepThen(time.Hour, note("a", errors.New("broken"))),
			[]string{"1h0m0s", "a"},
			"a: broken",
		},
	} {
		done = nil
		err := tc.step.Perform(t.Context(), nil, wait)
		if diff := cmp.Diff(tc.want, done); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
		if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
		}
	}
}
