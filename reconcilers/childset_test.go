// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

type childSetReconciler = reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]

// identified returns a change to a ConfigMap that gives it an id.
func identified(id string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"id": id} }
}

// member returns a ConfigMap of a set as the author writes it.
func member(id string, data ...string) *corev1.ConfigMap {
	cm := wanted("child-"+id, data...)
	identified(id)(cm)
	return cm
}

// desireAll is a DesiredChildren function.
func desireAll(err error, children ...*corev1.ConfigMap) func(context.Context, *fixture.Resource) ([]*corev1.ConfigMap, error) {
	return func(context.Context, *fixture.Resource) ([]*corev1.ConfigMap, error) {
		copies := []*corev1.ConfigMap{}
		for _, child := range children {
			copies = append(copies, child.DeepCopy())
		}
		return copies, err
	}
}

// newChildSetReconciler returns a reconciler that adds what it reflects to the trace of the world.
func newChildSetReconciler(w *world, changes ...func(*childSetReconciler)) *childSetReconciler {
	r := &childSetReconciler{
		DesiredChildren:    desireAll(nil, member("a"), member("b")),
		IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Labels["id"] },
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
		ReflectChildrenStatusOnParent: func(_ context.Context, _ *fixture.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap]) {
			parts := []string{}
			for _, child := range result.Children {
				part := child.Id + "="
				if child.Child != nil {
					part += child.Child.Name
				}
				if child.Err != nil {
					part += "!"
				}
				parts = append(parts, part)
			}
			_ = w.note("reflect [%s]", strings.Join(parts, " "))
			if err := result.AggregateError(); err != nil {
				_ = w.note("aggregate error %s", err)
			}
		},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func withoutOwners(r *childSetReconciler) {
	r.SkipOwnerReference = true
	r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "" }
	r.ListOptions = func(_ context.Context, parent *fixture.Resource) []client.ListOption {
		return []client.ListOption{client.InNamespace(parent.Namespace), client.HasLabels{"id"}}
	}
}

func eventOn(verb, name string) string {
	return fmt.Sprintf("event default/test Normal %s: %s ConfigMap %q", verb, verb, name)
}

func TestChildSetReconciler(t *testing.T) {
	const list = "list ConfigMap in default"
	a, b := newConfigMap("child-a", identified("a")), newConfigMap("child-b", identified("b"))
	drift := newConfigMap("child-a", identified("a"), func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" })
	for name, tc := range map[string]struct {
		reason string
		parent *fixture.Resource
		given  []client.Object
		change func(r *childSetReconciler)
		fail   map[string]error
		want   []string
		err    error
	}{
		"create": {
			reason: "children are created in the order of their ids, not in that of the author",
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("b"), member("a")) },
			want: []string{
				list, "create ConfigMap default/child-a", eventOn("Created", "child-a"),
				"create ConfigMap default/child-b", eventOn("Created", "child-b"), "reflect [a=child-a b=child-b]",
			},
		},
		"in sync": {
			reason: "there is one list for the whole set",
			given:  []client.Object{a, b},
			want:   []string{list, "reflect [a=child-a b=child-b]"},
		},
		"update": {
			reason: "drift of one child is repaired, the other is left alone",
			given:  []client.Object{drift, b},
			want:   []string{list, "update ConfigMap default/child-a", eventOn("Updated", "child-a"), "reflect [a=child-a b=child-b]"},
		},
		"delete": {
			reason: "a child that is not among the desired ones goes",
			given:  []client.Object{a, b},
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("b")) },
			want:   []string{list, "delete ConfigMap default/child-a", eventOn("Deleted", "child-a"), "reflect [a= b=child-b]"},
		},
		"create and delete": {
			reason: "ids of desired and known children are managed in one order",
			given:  []client.Object{b},
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("a"), member("c")) },
			want: []string{
				list, "create ConfigMap default/child-a", eventOn("Created", "child-a"),
				"delete ConfigMap default/child-b", eventOn("Deleted", "child-b"),
				"create ConfigMap default/child-c", eventOn("Created", "child-c"), "reflect [a=child-a b= c=child-c]",
			},
		},
		"none desired": {
			reason: "an empty set is reflected, too",
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil) },
			want:   []string{list, "reflect []"},
		},
		"without an id": {
			reason: "a known child that has lost its id belongs nowhere",
			given:  []client.Object{newConfigMap("child-x"), a, b},
			want:   []string{list, "delete ConfigMap default/child-x", eventOn("Deleted", "child-x"), "reflect [= a=child-a b=child-b]"},
		},
		"two with one id": {
			reason: "both go and a new one comes",
			given:  []client.Object{newConfigMap("child-1", identified("a")), newConfigMap("child-2", identified("a")), b},
			want: []string{
				list, "delete ConfigMap default/child-1", eventOn("Deleted", "child-1"), "delete ConfigMap default/child-2", eventOn("Deleted", "child-2"),
				"create ConfigMap default/child-a", eventOn("Created", "child-a"), "reflect [a=child-a b=child-b]",
			},
		},
		"one leaves, one lives": {
			reason: "a terminating child is not counted",
			given:  []client.Object{newConfigMap("child-1", identified("a"), leaving), a, b},
			want:   []string{list, "reflect [a=child-a b=child-b]"},
		},
		"not ours": {
			reason: "objects of others are not children",
			given:  []client.Object{newConfigMap("child-x", identified("x"), orphan), a, b},
			want:   []string{list, "reflect [a=child-a b=child-b]"},
		},
		"list fails": {
			reason: "nothing is decided without knowing the children",
			fail:   map[string]error{"list": errTest},
			want:   []string{list},
			err:    errTest,
		},
		"desired children fail": {
			reason: "nothing is reflected when it is not known what is desired",
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(errTest) },
			want:   []string{list},
			err:    errTest,
		},
		"only status": {
			reason: "OnlyReconcileChildStatus reflects all known children and leaves them alone",
			given:  []client.Object{drift, newConfigMap("child-x", identified("x"))},
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(reconcilers.OnlyReconcileChildStatus) },
			want:   []string{list, "reflect [a=child-a x=child-x]"},
		},
		"only status of none": {
			reason: "it is reflected that there is none",
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(reconcilers.OnlyReconcileChildStatus) },
			want:   []string{list, "reflect []"},
		},
		"one fails": {
			reason: "the rest is not attempted, and what there is so far is reflected",
			given:  []client.Object{a},
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("a"), member("b"), member("c")) },
			fail:   map[string]error{"create": errTest},
			want: []string{
				list, "create ConfigMap default/child-b",
				`event default/test Warning CreationFailed: Failed to create ConfigMap "child-b": failure of the test`, "reflect [a=child-a]",
			},
			err: errTest,
		},
		"one fails for a reason that is reflected": {
			reason: "the rest goes on",
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("a"), member("b")) },
			fail:   map[string]error{"create ConfigMap default/child-a": errInvalid},
			want: []string{
				list, "create ConfigMap default/child-a",
				`event default/test Warning CreationFailed: Failed to create ConfigMap "child-a": ` + errInvalid.Error(),
				"create ConfigMap default/child-b", eventOn("Created", "child-b"), "reflect [a=! b=child-b]",
				"aggregate error " + errInvalid.Error(),
			},
		},
		"parent is being deleted": {
			reason: "all children go, whatever is desired",
			parent: newResource(terminating, finalizer("hold")),
			given:  []client.Object{a, b},
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, member("a"), member("c")) },
			want: []string{
				list, "delete ConfigMap default/child-a", eventOn("Deleted", "child-a"),
				"delete ConfigMap default/child-b", eventOn("Deleted", "child-b"), "reflect []",
			},
		},
		"parent is being deleted, only status": {
			reason: "children go also when they are not to be managed otherwise",
			parent: newResource(terminating, finalizer("hold")),
			given:  []client.Object{a},
			change: func(r *childSetReconciler) { r.DesiredChildren = desireAll(reconcilers.OnlyReconcileChildStatus) },
			want:   []string{list, "delete ConfigMap default/child-a", eventOn("Deleted", "child-a"), "reflect []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			for line, err := range tc.fail {
				w.Fail(line, err)
			}
			parent := tc.parent
			if parent == nil {
				parent = newResource()
			}
			r := newChildSetReconciler(w)
			if tc.change != nil {
				tc.change(r)
			}
			result, err := r.Reconcile(w.Context(), parent)
			wantErr(t, tc.err, err)
			equal(t, "result", reconcilers.Result{}, result)
			equal(t, "trace", tc.want, w.Trace())
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestChildSetReconciler_IDs(t *testing.T) {
	for name, tc := range map[string]struct {
		children []*corev1.ConfigMap
		want     string
	}{
		"empty":     {[]*corev1.ConfigMap{member("a"), wanted("child")}, "desired child id may not be empty"},
		"duplicate": {[]*corev1.ConfigMap{member("a"), member("b"), member("a")}, "duplicate child id found: a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := newChildSetReconciler(w, func(r *childSetReconciler) { r.DesiredChildren = desireAll(nil, tc.children...) })
			_, err := r.Reconcile(w.Context(), newResource())
			wantText(t, tc.want, err)
			equal(t, "writes", nil, w.Writes())
		})
	}
}

func TestChildSetReconciler_ReflectFails(t *testing.T) {
	errReflect := errors.New("failure to reflect")
	w := newWorld(t).Fail("create", errTest)
	r := newChildSetReconciler(w, func(r *childSetReconciler) {
		r.ReflectChildrenStatusOnParentWithError = func(context.Context, *fixture.Resource, reconcilers.ChildSetResult[*corev1.ConfigMap]) error {
			return errReflect
		}
	})
	_, err := r.Reconcile(w.Context(), newResource())
	wantErr(t, errTest, err)
	wantErr(t, errReflect, err)
}

func TestChildSetReconciler_ByMergeBeforeUpdate(t *testing.T) {
	w := newWorld(t, newConfigMap("child-a", identified("a"), func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" }))
	r := newChildSetReconciler(w, func(r *childSetReconciler) { r.ChildObjectManager, r.MergeBeforeUpdate = nil, mergeData })
	_, err := r.Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	equal(t, "writes", []string{
		"update ConfigMap default/child-a", eventOn("Updated", "child-a"), "create ConfigMap default/child-b", eventOn("Created", "child-b"),
		"reflect [a=child-a b=child-b]",
	}, w.Writes())
}

func TestRetrieveKnownChildren(t *testing.T) {
	given := newConfigMap("child-a", identified("a"))
	w := newWorld(t, given)
	names := func(children []*corev1.ConfigMap) []string {
		names := []string{}
		for _, child := range children {
			names = append(names, child.Name)
			child.Data["key"] = "changed by whoever looks"
		}
		return names
	}
	r := newChildSetReconciler(w, func(r *childSetReconciler) {
		r.DesiredChildren = func(ctx context.Context, _ *fixture.Resource) ([]*corev1.ConfigMap, error) {
			equal(t, "known children", []string{"child-a"}, names(reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx)))
			if secrets := reconcilers.RetrieveKnownChildren[*corev1.Secret](ctx); secrets != nil {
				t.Errorf("known children of another kind: %v", secrets)
			}
			return []*corev1.ConfigMap{member("a")}, nil
		}
	})
	_, err := r.Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	equal(t, "writes: known children are copies", []string{"reflect [a=child-a]"}, w.Writes())
	if known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](w.Context()); known != nil {
		t.Errorf("known children outside of a set: %v", known)
	}

	t.Run("none", func(t *testing.T) {
		w := newWorld(t)
		r := newChildSetReconciler(w, func(r *childSetReconciler) {
			r.DesiredChildren = func(ctx context.Context, _ *fixture.Resource) ([]*corev1.ConfigMap, error) {
				if known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx); known == nil || len(known) != 0 {
					t.Errorf("known children = %#v", known)
				}
				return nil, nil
			}
		})
		_, err := r.Reconcile(w.Context(), newResource())
		wantErr(t, nil, err)
	})
}
