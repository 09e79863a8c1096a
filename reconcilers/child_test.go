// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

type (
	childReconciler = reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]
	configMaps      = reconcilers.UpdatingObjectManager[*corev1.ConfigMap]
)

// desire is a DesiredChild function.
func desire(child *corev1.ConfigMap, err error) func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
	return func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
		if child == nil {
			return nil, err
		}
		return child.DeepCopy(), err
	}
}

// newChildReconciler returns a reconciler that adds what it reflects to the trace of the world.
func newChildReconciler(w *world, changes ...func(*childReconciler)) *childReconciler {
	r := &childReconciler{
		DesiredChild:       desire(wanted("child"), nil),
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
		ReflectChildStatusOnParent: func(_ context.Context, _ *fixture.Resource, child *corev1.ConfigMap, err error) {
			w.reflect(child, err)
		},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

// reflect notes what is reflected on a parent.
func (w *world) reflect(child *corev1.ConfigMap, err error) {
	what := "nothing"
	if child != nil {
		what = fmt.Sprintf("%q", child.Name)
	}
	if err != nil {
		what += ": " + err.Error()
	}
	_ = w.note("reflect %s", what)
}

// withoutOwner makes a ChildReconciler tell its children by their names.
func withoutOwner(r *childReconciler) {
	r.SkipOwnerReference = true
	r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name != "other" }
	r.ListOptions = func(_ context.Context, parent *fixture.Resource) []client.ListOption {
		return []client.ListOption{client.InNamespace(parent.Namespace)}
	}
}

const (
	childCreated = `event default/test Normal Created: Created ConfigMap "child"`
	childUpdated = `event default/test Normal Updated: Updated ConfigMap "child"`
	childDeleted = `event default/test Normal Deleted: Deleted ConfigMap "child"`
)

func TestChildReconciler(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		parent *fixture.Resource
		given  []client.Object
		change func(r *childReconciler)
		fail   map[string]error
		want   []string
		err    error
	}{
		"create": {
			reason: "a child that is missing is created and reflected as the server has it",
			want:   []string{"list ConfigMap in default", "create ConfigMap default/child", childCreated, `reflect "child"`},
		},
		"in sync": {
			reason: "nothing is written for a child that is as desired",
			given:  []client.Object{newConfigMap("child")},
			want:   []string{"list ConfigMap in default", `reflect "child"`},
		},
		"update": {
			reason: "drift is repaired",
			given:  []client.Object{newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" })},
			want:   []string{"list ConfigMap in default", "update ConfigMap default/child", childUpdated, `reflect "child"`},
		},
		"delete": {
			reason: "a child that is no longer desired is deleted, and nothing is reflected as the child",
			given:  []client.Object{newConfigMap("child")},
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, nil) },
			want:   []string{"list ConfigMap in default", "delete ConfigMap default/child", childDeleted, "reflect nothing"},
		},
		"none desired": {
			reason: "no child is a valid state, too",
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, nil) },
			want:   []string{"list ConfigMap in default", "reflect nothing"},
		},
		"not ours": {
			reason: "objects of others are not children, in whatever way they are similar",
			given: []client.Object{
				newConfigMap("orphan", orphan),
				newConfigMap("of-another", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].UID = "another" }),
				newConfigMap("not-controlled", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].Controller = nil }),
				newConfigMap("elsewhere", func(cm *corev1.ConfigMap) { cm.Namespace = "elsewhere" }),
			},
			want: []string{"list ConfigMap in default", "create ConfigMap default/child", childCreated, `reflect "child"`},
		},
		"of another reconciler": {
			reason: "OurChild tells apart the children of several reconcilers",
			given: []client.Object{
				newConfigMap("other"),
				newConfigMap("child"),
			},
			change: func(r *childReconciler) {
				r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name != "other" }
			},
			want: []string{"list ConfigMap in default", `reflect "child"`},
		},
		"no owner references": {
			reason: "without owner references OurChild alone decides",
			given:  []client.Object{newConfigMap("other"), newConfigMap("child", orphan)},
			change: withoutOwner,
			want:   []string{"list ConfigMap in default", `reflect "child"`},
		},
		"own list options": {
			reason: "ListOptions replace the default",
			change: func(r *childReconciler) {
				r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption {
					return []client.ListOption{client.InNamespace("other"), client.MatchingLabels{"app": "test"}}
				}
			},
			want: []string{"list ConfigMap in other labels app=test", "create ConfigMap default/child", childCreated, `reflect "child"`},
		},
		"list fails": {
			reason: "nothing is decided without knowing the children",
			fail:   map[string]error{"list": errTest},
			want:   []string{"list ConfigMap in default"},
			err:    errTest,
		},
		"several": {
			reason: "which of them is the right one cannot be told, so all go, in the order of the list, and a new one comes",
			given:  []client.Object{newConfigMap("child-b"), newConfigMap("child-a"), newConfigMap("child-c")},
			want: []string{
				"list ConfigMap in default",
				"delete ConfigMap default/child-a", `event default/test Normal Deleted: Deleted ConfigMap "child-a"`,
				"delete ConfigMap default/child-b", `event default/test Normal Deleted: Deleted ConfigMap "child-b"`,
				"delete ConfigMap default/child-c", `event default/test Normal Deleted: Deleted ConfigMap "child-c"`,
				"create ConfigMap default/child", childCreated, `reflect "child"`,
			},
		},
		"several and a failure": {
			reason: "the first delete that fails ends it",
			given:  []client.Object{newConfigMap("child-a"), newConfigMap("child-b")},
			fail:   map[string]error{"delete": errTest},
			want: []string{
				"list ConfigMap in default",
				"delete ConfigMap default/child-a",
				`event default/test Warning DeleteFailed: Failed to delete ConfigMap "child-a": failure of the test`,
			},
			err: errTest,
		},
		"several, none desired": {
			reason: "all go",
			given:  []client.Object{newConfigMap("child-a"), newConfigMap("child-b")},
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, nil) },
			want: []string{
				"list ConfigMap in default",
				"delete ConfigMap default/child-a", `event default/test Normal Deleted: Deleted ConfigMap "child-a"`,
				"delete ConfigMap default/child-b", `event default/test Normal Deleted: Deleted ConfigMap "child-b"`,
				"reflect nothing",
			},
		},
		"only status": {
			reason: "OnlyReconcileChildStatus leaves the child alone",
			given:  []client.Object{newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" })},
			change: func(r *childReconciler) {
				r.DesiredChild = desire(nil, fmt.Errorf("wrapped: %w", reconcilers.OnlyReconcileChildStatus))
			},
			want: []string{"list ConfigMap in default", `reflect "child"`},
		},
		"only status of none": {
			reason: "a blank object stands for the missing child",
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, reconcilers.OnlyReconcileChildStatus) },
			want:   []string{"list ConfigMap in default", `reflect ""`},
		},
		"several, only status": {
			reason: "leaving the child alone includes not to delete it",
			given:  []client.Object{newConfigMap("child-a"), newConfigMap("child-b")},
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, reconcilers.OnlyReconcileChildStatus) },
			want:   []string{"list ConfigMap in default", `reflect "child-a"`},
		},
		"several, desired child fails": {
			reason: "nothing is deleted that cannot be made anew",
			given:  []client.Object{newConfigMap("child-a"), newConfigMap("child-b")},
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, errTest) },
			want:   []string{"list ConfigMap in default"},
			err:    errTest,
		},
		"desired child fails": {
			reason: "nothing is reflected when it is not known what is desired",
			given:  []client.Object{newConfigMap("child")},
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, errTest) },
			want:   []string{"list ConfigMap in default"},
			err:    errTest,
		},
		"parent is being deleted": {
			reason: "no child is desired then, and nobody reads the status",
			parent: newResource(terminating, finalizer("hold")),
			given:  []client.Object{newConfigMap("child")},
			change: func(r *childReconciler) { r.DesiredChild = desire(nil, errTest) },
			want:   []string{"list ConfigMap in default", "delete ConfigMap default/child", childDeleted},
		},
		"parent is being deleted and the child, too": {
			reason: "nothing is left to do",
			parent: newResource(terminating, finalizer("hold")),
			given:  []client.Object{newConfigMap("child", leaving)},
			want:   []string{"list ConfigMap in default"},
		},
		"parent is being deleted and that fails": {
			reason: "an error that would be reflected is returned, since nothing is reflected",
			parent: newResource(terminating, finalizer("hold")),
			given:  []client.Object{newConfigMap("child")},
			fail:   map[string]error{"delete": errInvalid},
			want: []string{
				"list ConfigMap in default", "delete ConfigMap default/child",
				`event default/test Warning DeleteFailed: Failed to delete ConfigMap "child": ` + errInvalid.Error(),
			},
			err: errInvalid,
		},
		"reflect fails": {
			reason: "the error of ReflectChildStatusOnParentWithError is returned, and it is preferred to the other form",
			given:  []client.Object{newConfigMap("child")},
			change: func(r *childReconciler) {
				r.ReflectChildStatusOnParentWithError = func(context.Context, *fixture.Resource, *corev1.ConfigMap, error) error { return errTest }
			},
			want: []string{"list ConfigMap in default"},
			err:  errTest,
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
			r := newChildReconciler(w)
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

func TestChildReconciler_OwnerReference(t *testing.T) {
	yes := true
	ours := metav1.OwnerReference{
		APIVersion: "fixture.trueup.dev/v1", Kind: "Resource", Name: "test", UID: "parent", Controller: &yes, BlockOwnerDeletion: &yes,
	}
	another := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "another", UID: "another", Controller: &yes}
	friend := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "friend", UID: "friend"}
	weak := metav1.OwnerReference{APIVersion: "fixture.trueup.dev/v2", Kind: "Resource", Name: "test", UID: "parent"}
	for name, tc := range map[string]struct {
		given, want []metav1.OwnerReference
	}{
		"none":                        {nil, []metav1.OwnerReference{ours}},
		"of a friend":                 {[]metav1.OwnerReference{friend}, []metav1.OwnerReference{friend, ours}},
		"a controller of their own":   {[]metav1.OwnerReference{another}, []metav1.OwnerReference{another}},
		"ours in another version":     {[]metav1.OwnerReference{weak, friend}, []metav1.OwnerReference{ours, friend}},
		"ours, as the author made it": {[]metav1.OwnerReference{ours}, []metav1.OwnerReference{ours}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			desired := wanted("child")
			desired.OwnerReferences = tc.given
			r := newChildReconciler(w, func(r *childReconciler) { r.DesiredChild = desire(desired, nil) })
			_, err := r.Reconcile(w.Context(), newResource())
			wantErr(t, nil, err)
			equal(t, "owner references", tc.want, stored(w, desired).OwnerReferences)
		})
	}

	t.Run("of a duck", func(t *testing.T) {
		w := newWorld(t)
		duck := fixture.NewDuck("default", "test")
		duck.UID = "parent"
		r := &reconcilers.ChildReconciler[*fixture.Duck, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild:               func(context.Context, *fixture.Duck) (*corev1.ConfigMap, error) { return wanted("child"), nil },
			MergeBeforeUpdate:          mergeData,
			ReflectChildStatusOnParent: func(context.Context, *fixture.Duck, *corev1.ConfigMap, error) {},
		}
		_, err := r.Reconcile(w.Context(), duck)
		wantErr(t, nil, err)
		equal(t, "owner references", []metav1.OwnerReference{ours}, stored(w, wanted("child")).OwnerReferences)
	})
	t.Run("skipped", func(t *testing.T) {
		w := newWorld(t)
		_, err := newChildReconciler(w, withoutOwner).Reconcile(w.Context(), newResource())
		wantErr(t, nil, err)
		equal(t, "owner references", nil, stored(w, wanted("child")).OwnerReferences)
	})
	for name, tc := range map[string]struct{ namespace, want string }{
		"of a cluster-scoped child":          {"", "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace default"},
		"of a child in another namespace":    {"other", "cross-namespace owner references are disallowed, owner's namespace default, obj's namespace other"},
		"of a child in the parent's own one": {"default", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			desired := wanted("child")
			desired.Namespace = tc.namespace
			_, err := newChildReconciler(w, func(r *childReconciler) { r.DesiredChild = desire(desired, nil) }).Reconcile(w.Context(), newResource())
			wantText(t, tc.want, err)
			equal(t, "creates", tc.want == "", w.Count("create") == 1)
		})
	}
}

func TestChildReconciler_DesiredThatIsNotOurs(t *testing.T) {
	w := newWorld(t)
	log, lines := newLog(0)
	r := newChildReconciler(w, func(r *childReconciler) {
		r.OurChild = func(*fixture.Resource, *corev1.ConfigMap) bool { return false }
	})
	_, err := r.Reconcile(withLog(w.Context(), log), newResource())
	wantErr(t, nil, err)
	equal(t, "creates", 1, w.Count("create"))
	equal(t, "first message", "desired child does not match OurChild, it will not be found again", lines.messages()[0])
}

func TestChildReconciler_ByMergeBeforeUpdate(t *testing.T) {
	drift := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"], cm.Data["immutable"] = "drift", "kept" })
	log, lines := newLog(0)
	w := newWorld(t, drift)
	r := newChildReconciler(w, func(r *childReconciler) {
		r.ChildObjectManager = nil
		r.MergeBeforeUpdate = mergeData
		r.HarmonizeImmutableFields = func(current, desired *corev1.ConfigMap) { desired.Data["immutable"] = current.Data["immutable"] }
		r.Sanitize = func(child *corev1.ConfigMap) any { return "sanitized " + child.Data["key"] }
	})
	_, err := r.Reconcile(withLog(w.Context(), log), newResource())
	wantErr(t, nil, err)
	equal(t, "writes", []string{"update ConfigMap default/child", childUpdated, `reflect "child"`}, w.Writes())
	equal(t, "data", map[string]string{"key": "value", "immutable": "kept"}, stored(w, drift).Data)
	for _, want := range []string{"sanitized drift", "sanitized value"} {
		contains(t, lines.all(), want)
	}
}

func TestChildReconciler_Finalizer(t *testing.T) {
	parent := newResource()
	w := newWorld(t, parent)
	r := newChildReconciler(w, withoutOwner, func(r *childReconciler) {
		r.SkipOwnerReference = false
		r.ChildObjectManager, r.MergeBeforeUpdate, r.Finalizer = nil, mergeData, "test-finalizer"
	})
	_, err := r.Reconcile(w.Context(), parent.DeepCopy())
	wantErr(t, nil, err)
	equal(t, "writes: the finalizer comes first, and without an owner reference changes of the child have to be tracked", []string{
		added, patched, "create ConfigMap default/child", "track ConfigMap default/child for default/test", childCreated, `reflect "child"`,
	}, w.Writes())
	equal(t, "owner references: a finalizer implies to have none", nil, stored(w, wanted("child")).OwnerReferences)
}
