// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/stash"
)

func TestSubReconcilerTestCaseStash(t *testing.T) {
	given := configMap("given")
	tc := &subCase{
		Resource: newResource("resource"),
		GivenStashedValues: map[stash.Key]interface{}{
			"object":    given,
			"die":       die{configMap("die")},
			"nil":       nil,
			"typed nil": (*corev1.ConfigMap)(nil),
			"text":      "as it is",
		},
		ExpectStashedValues: map[stash.Key]interface{}{
			"object":     configMap("changed"),
			"die":        die{configMap("die")},
			"text":       "as it is",
			"nil":        (*corev1.ConfigMap)(nil),
			"typed nil":  nil,
			"missing":    nil,
			"added list": []string{"a", "b"},
		},
	}
	tc.Run(t, scheme, syncing(func(ctx context.Context, _ *fixture.Resource) error {
		if _, ok := stash.RetrieveValue(ctx, "die").(*corev1.ConfigMap); !ok {
			t.Error("what is stashed is not what is in the die")
		}
		for _, key := range []stash.Key{"nil", "typed nil"} {
			if !stash.HasValue(ctx, key) {
				t.Errorf("%s is not in the stash", key)
			}
		}
		stash.RetrieveValue(ctx, "object").(*corev1.ConfigMap).Name = "changed"
		stash.StoreValue(ctx, "added list", []string{"a", "b"})
		stash.StoreValue(ctx, "not mentioned", 1)
		return nil
	}))
	if given.Name != "given" {
		t.Error("the reconciler has changed the object of the table")
	}
}

func TestSubReconcilerTestCaseVerifyStashedValue(t *testing.T) {
	type call struct {
		Key              stash.Key
		Expected, Actual any
	}
	var calls []call
	tc := &subCase{
		Resource:            newResource("resource"),
		ExpectStashedValues: map[stash.Key]interface{}{"b": 1, "a": 2, "missing": nil},
		VerifyStashedValue: func(_ *testing.T, key stash.Key, expected, actual interface{}) {
			calls = append(calls, call{key, expected, actual})
		},
	}
	tc.Run(t, scheme, syncing(func(ctx context.Context, _ *fixture.Resource) error {
		stash.StoreValue(ctx, "a", "other")
		stash.StoreValue(ctx, "b", 1)
		return nil
	}))
	want := []call{{"a", 2, "other"}, {"b", 1, 1}, {"missing", nil, nil}}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
