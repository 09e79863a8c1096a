// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Does a webhook make a change of the spec vanish? The child is in sync with the value "value". Then the author wants
// "new" and the webhook changes what the server stores.
func TestUpdatingObjectManager_WhatAWebhookKeeps(t *testing.T) {
	for name, tc := range map[string]struct {
		given func(*corev1.ConfigMap)
		// admit changes an object that is written. old is nil for a new one.
		admit func(obj, old *corev1.ConfigMap)
		// first and second are what is reflected by two reconciles, and last after the webhook is gone.
		first, second, last string
		// writes are the writes of the first two reconciles.
		writes []string
		event  string
		// fails is a request that fails.
		fails string
	}{
		"none": {
			admit: func(_, _ *corev1.ConfigMap) {},
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child"},
		},
		"keeps the old value": {
			admit: func(obj, old *corev1.ConfigMap) {
				if old != nil {
					obj.Data = old.Data
				}
			},
			first: "kept", second: "kept", last: `"child"`,
			writes: []string{
				"update ConfigMap default/child", "create ConfigMap default/child-",
				"update ConfigMap default/child", "create ConfigMap default/child-",
			},
			event: "Warning UpdateFailed: ",
		},
		"keeps the old value, and stamps each write": {
			admit: func(obj, old *corev1.ConfigMap) {
				if old != nil {
					obj.Data = old.Data
					obj.Annotations = map[string]string{"stamp": old.Annotations["stamp"] + "."}
				}
			},
			first: "kept", second: "kept", last: `"child"`,
			writes: []string{
				"update ConfigMap default/child", "create ConfigMap default/child-",
				"update ConfigMap default/child", "create ConfigMap default/child-",
			},
			event: "Warning UpdateFailed: ",
		},
		"keeps one of two": {
			admit: func(obj, old *corev1.ConfigMap) {
				if old != nil {
					obj.Data["key"] = old.Data["key"]
				}
			},
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child"},
		},
		"stores another value of new objects, too": {
			admit: func(obj, _ *corev1.ConfigMap) { obj.Data = map[string]string{"key": "value"} },
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child", "create ConfigMap default/child-"},
			event:  "Warning FieldsKept: ",
		},
		"stores another value, and a dry run fails": {
			admit: func(obj, _ *corev1.ConfigMap) { obj.Data = map[string]string{"key": "value"} },
			first: `"child"`, second: `"child"`, last: `"child"`, fails: "create ConfigMap",
			writes: []string{"update ConfigMap default/child", "create ConfigMap default/child-"},
			event:  "Warning FieldsKept: The API server stores other values of ConfigMap default/child than requested, the dry ",
		},
		"stamps each write": {
			given: func(cm *corev1.ConfigMap) { cm.Data["stamp"] = "." },
			admit: func(obj, old *corev1.ConfigMap) { obj.Data["stamp"] = old.Data["stamp"] + "." },
			first: `"child"`, second: `"child"`, last: `"child"`,
			writes: []string{"update ConfigMap default/child"},
			event:  "Warning FieldsRewritten: The API server sets fields of ConfigMap default/child to another value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			existing := newConfigMap("child")
			if tc.given != nil {
				tc.given(existing)
			}
			w := newWorld(t, newResource(), existing)
			if tc.fails != "" {
				w.Fail(tc.fails, errTest)
			}
			admits := true
			w.Admit = func(obj client.Object) {
				cm, ok := obj.(*corev1.ConfigMap)
				if !ok || !admits {
					return
				}
				old := stored(w, cm)
				if cm.ResourceVersion == "" {
					old = nil
				}
				tc.admit(cm, old)
			}
			child := newChild(showReflected)
			child.DesiredChild = desire(wanted("child", "key", "new", "other", "new"), nil)
			root := &resourceReconciler{Config: w.Config, Reconciler: child}
			reconcile := func() string {
				t.Helper()
				if _, err := root.ReconcileManaged(t.Context(), testRequest); err != nil {
					t.Fatal(err)
				}
				what := stored(w, newResource()).Status.Fields["reflected"]
				if strings.Contains(what, "kept the old values") {
					return "kept"
				}
				return what
			}
			got := []string{reconcile(), reconcile()}
			writes, found := []string{}, tc.event == ""
			for _, line := range w.Trace() {
				if strings.HasPrefix(line, "update ConfigMap") || strings.HasPrefix(line, "create ConfigMap") {
					writes = append(writes, strings.TrimRight(line, "0123456789"))
				}
				found = found || strings.Contains(line, tc.event)
			}
			admits = false
			got = append(got, reconcile())
			if diff := cmp.Diff([]string{tc.first, tc.second, tc.last}, got); diff != "" {
				t.Errorf("unexpected reflections (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("unexpected writes (-want +got):\n%s", diff)
			}
			if !found {
				t.Errorf("no event %q", tc.event)
			}
		})
	}
}
