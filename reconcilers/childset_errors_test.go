// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
)

// What does a set in a controller report if a member fails, or if its members are unknown? Each member is tried, and
// the reflect function sees each of them with its error.
func TestChildSetReconciler_EachMemberIsTriedAndReflected(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*childSetReconciler)
		given objects
		fail  string
		// want is what is reflected. creates are the children that exist afterwards.
		want, exist string
	}{
		"one fails": {
			fail: "create ConfigMap default/child-b", exist: "child-a child-c",
			want: "[a=child-a b=! c=child-c] aggregate error failure of the test",
		},
		"the first fails, and exists": {
			given: objects{newConfigMap("child-a", identified("a"), drift)}, fail: "update ConfigMap default/child-a",
			want: "[a=child-a! b=child-b c=child-c] aggregate error failure of the test", exist: "child-a child-b child-c",
		},
		"DesiredChildren fails": {
			edit:  func(r *childSetReconciler) { r.DesiredChildren = desireAll(errTest) },
			given: objects{newConfigMap("child-a", identified("a"))},
			want:  "[a=child-a!] aggregate error [failure of the test, the child was not reconciled]", exist: "child-a",
		},
		"DesiredChildren fails, and there are none": {
			edit: func(r *childSetReconciler) { r.DesiredChildren = desireAll(errTest) },
			want: "[] aggregate error failure of the test",
		},
		"ids repeat": {
			edit: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("a"), member("a")) },
			want: "[] aggregate error duplicate child id found: a",
		},
		"a deletion fails": {
			edit:  func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("c")) },
			given: objects{newConfigMap("child-b", identified("b"))}, fail: "delete ConfigMap default/child-b",
			want: "[b=child-b! c=child-c] aggregate error failure of the test", exist: "child-b child-c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(objects{newResource()}, tc.given...)...)
			if tc.fail != "" {
				w.Fail(tc.fail, errTest)
			}
			set := newChildSet(showReflected)
			set.DesiredChildren = desireAll(nil, member("a"), member("b"), member("c"))
			if tc.edit != nil {
				tc.edit(set)
			}
			root := &resourceReconciler{Config: w.Config, Reconciler: set}
			if _, err := root.ReconcileManaged(t.Context(), testRequest); err == nil {
				t.Error("expected the error of the child, got none")
			} else if tc.fail != "" && !errors.Is(err, errTest) {
				t.Errorf("unexpected error %v", err)
			}
			r := &fixture.Resource{}
			if err := w.Server.Get(t.Context(), testRequest.NamespacedName, r); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.Status.Fields["reflected"]); diff != "" {
				t.Errorf("unexpected reflection (-want +got):\n%s", diff)
			}
			list, names := &corev1.ConfigMapList{}, []string{}
			if err := w.Server.List(t.Context(), list, client.InNamespace("default")); err != nil {
				t.Fatal(err)
			}
			for _, child := range list.Items {
				names = append(names, child.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.exist, strings.Join(names, " ")); diff != "" {
				t.Errorf("unexpected children (-want +got):\n%s", diff)
			}
		})
	}
}
