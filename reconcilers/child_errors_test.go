// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/fixture"
	"trueup.dev/reconcilers"
)

var (
	configMapResource = schema.GroupResource{Resource: "configmaps"}
	errExists         = apierrs.NewAlreadyExists(configMapResource, "child")
	errForbidden      = apierrs.NewForbidden(configMapResource, "child", errTest)
	errNotFound       = apierrs.NewNotFound(configMapResource, "child")
)

func TestChildReconciler_ReflectedErrors(t *testing.T) {
	const list = "list ConfigMap in default"
	const create = "create ConfigMap default/child"
	failed := func(err error) string {
		return `event default/test Warning CreationFailed: Failed to create ConfigMap "child": ` + err.Error()
	}
	elsewhere := func(r *childReconciler) {
		r.DesiredChild = desire(newConfigMap("child", orphan, func(cm *corev1.ConfigMap) {
			cm.Namespace, cm.ResourceVersion, cm.CreationTimestamp, cm.UID = "other", "", metav1.Time{}, ""
		}), nil)
	}
	const track = "track ConfigMap default/child for default/test"
	for name, tc := range map[string]struct {
		reason string
		given  []client.Object
		unseen bool
		change []func(r *childReconciler)
		create error
		fail   map[string]error
		want   []string
		err    error
	}{
		"forbidden": {
			reason: "the author of the parent can do something about it, a retry cannot",
			create: errForbidden,
			want:   []string{list, create, failed(errForbidden), "reflect nothing: " + errForbidden.Error()},
		},
		"invalid": {
			reason: "the same",
			create: errInvalid,
			want:   []string{list, create, failed(errInvalid), "reflect nothing: " + errInvalid.Error()},
		},
		"wrapped": {
			reason: "object managers may wrap errors",
			create: fmt.Errorf("wrapped: %w", errInvalid),
			want:   []string{list, create, failed(fmt.Errorf("wrapped: %w", errInvalid)), "reflect nothing: wrapped: " + errInvalid.Error()},
		},
		"conflict": {
			reason: "it says nothing about the child",
			create: errConflict,
			want:   []string{list, create, failed(errConflict)},
			err:    errConflict,
		},
		"no API error": {
			reason: "it says nothing about the child",
			create: errTest,
			want:   []string{list, create, failed(errTest)},
			err:    errTest,
		},
		"a reason of the author's choice": {
			reason: "ReflectedChildErrorReasons replaces the default",
			create: errConflict,
			change: []func(*childReconciler){func(r *childReconciler) {
				r.ReflectedChildErrorReasons = []metav1.StatusReason{metav1.StatusReasonConflict}
			}},
			want: []string{list, create, failed(errConflict), "reflect nothing: " + errConflict.Error()},
		},
		"not a reason of the author's choice": {
			reason: "ReflectedChildErrorReasons replaces the default",
			create: errInvalid,
			change: []func(*childReconciler){func(r *childReconciler) {
				r.ReflectedChildErrorReasons = []metav1.StatusReason{metav1.StatusReasonConflict}
			}},
			want: []string{list, create, failed(errInvalid)},
			err:  errInvalid,
		},
		"no reasons": {
			reason: "empty is not the default",
			create: errInvalid,
			change: []func(*childReconciler){func(r *childReconciler) { r.ReflectedChildErrorReasons = []metav1.StatusReason{} }},
			want:   []string{list, create, failed(errInvalid)},
			err:    errInvalid,
		},
		"name is taken": {
			reason: "the object in the way is read past the cache and tracked, so that the parent is triggered when it goes",
			given:  []client.Object{newConfigMap("child", orphan)},
			create: errExists,
			want: []string{
				list, create, failed(errExists), "live get ConfigMap default/child", track, "reflect nothing: " + errExists.Error(),
			},
		},
		"name is taken, wrapped": {
			reason: "the name of the object in the way is found also in an error that is wrapped",
			given:  []client.Object{newConfigMap("child", orphan)},
			create: fmt.Errorf("wrapped: %w", errExists),
			want: []string{
				list, create, failed(fmt.Errorf("wrapped: %w", errExists)), "live get ConfigMap default/child", track,
				"reflect nothing: wrapped: " + errExists.Error(),
			},
		},
		"name is taken, another one than desired": {
			reason: "the error knows best which name that is",
			given:  []client.Object{newConfigMap("another", orphan)},
			create: apierrs.NewAlreadyExists(configMapResource, "another"),
			want: []string{
				list, create, failed(apierrs.NewAlreadyExists(configMapResource, "another")), "live get ConfigMap default/another",
				"track ConfigMap default/another for default/test",
				"reflect nothing: " + apierrs.NewAlreadyExists(configMapResource, "another").Error(),
			},
		},
		"name is taken, no owner references": {
			reason: "whoever does not use owner references tracks on their own",
			given:  []client.Object{newConfigMap("child", orphan)},
			create: errExists,
			change: []func(*childReconciler){withoutOwner, func(r *childReconciler) {
				r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["ours"] != "" }
			}},
			want: []string{
				list, create, failed(errExists), "live get ConfigMap default/child", "reflect nothing: " + errExists.Error(),
			},
		},
		"stale cache": {
			reason: "what is in the way was created by an earlier request and has not reached the cache yet",
			given:  []client.Object{newConfigMap("child")},
			unseen: true,
			create: errExists,
			want:   []string{list, create, failed(errExists), "live get ConfigMap default/child"},
			err:    errExists,
		},
		"gone meanwhile": {
			reason: "a name that is free again is no reason to blame anybody",
			create: errExists,
			want:   []string{list, create, failed(errExists), "live get ConfigMap default/child"},
			err:    errExists,
		},
		"unable to read": {
			reason: "who is in the way cannot be told, so both errors are reported",
			create: errExists,
			fail:   map[string]error{"live get": errTest},
			want:   []string{list, create, failed(errExists), "live get ConfigMap default/child"},
			err:    errTest,
		},
		"name is taken in another namespace": {
			reason: "the object in the way is where the child is to be",
			given: []client.Object{newConfigMap("child"), newConfigMap("child", orphan, func(cm *corev1.ConfigMap) {
				cm.Namespace = "other"
			})},
			unseen: true,
			create: errExists,
			change: []func(*childReconciler){withoutOwner, elsewhere, func(r *childReconciler) {
				r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.OwnerReferences != nil }
			}},
			want: []string{
				list, "create ConfigMap other/child", failed(errExists), "live get ConfigMap other/child", "reflect nothing: " + errExists.Error(),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...).Fail("create", tc.create)
			for line, err := range tc.fail {
				w.Fail(line, err)
			}
			w.Unseen = func(client.Object) bool { return tc.unseen }
			result, err := newChildReconciler(w, tc.change...).Reconcile(w.Context(), newResource())
			wantErr(t, tc.err, err)
			equal(t, "result", reconcilers.Result{}, result)
			equal(t, "trace", tc.want, w.Trace())
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}

func TestDefect02_TerminatingChildIsNotCounted(t *testing.T) {
	const list = "list ConfigMap in default"
	generate := func(r *childReconciler) {
		r.DesiredChild = desire(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "child-"}, Data: map[string]string{"key": "value"},
		}, nil)
	}
	for name, tc := range map[string]struct {
		given  []client.Object
		change []func(*childReconciler)
		// want is what each of several reconciles does.
		want [][]string
	}{
		"one lives, one goes": {
			given: []client.Object{newConfigMap("child"), newConfigMap("a-leaving", leaving)},
			want:  [][]string{{list, `reflect "child"`}, {list, `reflect "child"`}},
		},
		"one lives, one goes, drift": {
			given: []client.Object{
				newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data["key"] = "drift" }), newConfigMap("a-leaving", leaving),
			},
			want: [][]string{{list, "update ConfigMap default/child", childUpdated, `reflect "child"`}, {list, `reflect "child"`}},
		},
		"two go, the name is fixed": {
			given: []client.Object{newConfigMap("a-leaving", leaving), newConfigMap("child", leaving)},
			want:  [][]string{{list, `reflect "child"`}, {list, `reflect "child"`}},
		},
		"two go, the name is generated": {
			given:  []client.Object{newConfigMap("child-a", leaving), newConfigMap("child-b", leaving)},
			change: []func(*childReconciler){generate},
			want: [][]string{
				{list, "create ConfigMap default/child-1", `event default/test Normal Created: Created ConfigMap "child-1"`, `reflect "child-1"`},
				{list, `reflect "child-1"`},
				{list, `reflect "child-1"`},
			},
		},
		"two go, none is desired": {
			given:  []client.Object{newConfigMap("child-a", leaving), newConfigMap("child-b", leaving)},
			change: []func(*childReconciler){func(r *childReconciler) { r.DesiredChild = desire(nil, nil) }},
			want:   [][]string{{list, "reflect nothing"}, {list, "reflect nothing"}},
		},
		"three live": {
			given: []client.Object{newConfigMap("child-a"), newConfigMap("child-b"), newConfigMap("child-c")},
			want: [][]string{
				{
					list,
					"delete ConfigMap default/child-a", `event default/test Normal Deleted: Deleted ConfigMap "child-a"`,
					"delete ConfigMap default/child-b", `event default/test Normal Deleted: Deleted ConfigMap "child-b"`,
					"delete ConfigMap default/child-c", `event default/test Normal Deleted: Deleted ConfigMap "child-c"`,
					"create ConfigMap default/child", childCreated, `reflect "child"`,
				},
				{list, `reflect "child"`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			r := newChildReconciler(w, tc.change...)
			for i, want := range tc.want {
				_, err := r.Reconcile(w.Context(), newResource())
				wantErr(t, nil, err)
				equal(t, fmt.Sprintf("trace of reconcile %d", i+1), want, w.Trace())
			}
		})
	}
}

func TestDefect02_ChildTakesTheNameOnceItIsFree(t *testing.T) {
	old := newConfigMap("child", leaving)
	w := newWorld(t, old)
	r := newChildReconciler(w)
	_, err := r.Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	equal(t, "writes while the old one goes", []string{`reflect "child"`}, w.Writes())

	gone := stored(w, old)
	gone.Finalizers = nil
	wantErr(t, nil, w.Server.Update(context.Background(), gone))
	_, err = r.Reconcile(w.Context(), newResource())
	wantErr(t, nil, err)
	equal(t, "writes once it is gone", []string{"create ConfigMap default/child", childCreated, `reflect "child"`}, w.Writes())
}

// stubManager returns what it is told to.
type stubManager struct {
	world *world
	child *corev1.ConfigMap
	err   error
	setup int
}

func (m *stubManager) SetupWithManager(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
	m.setup++
	return nil
}

func (m *stubManager) Manage(_ context.Context, resource client.Object, actual, desired *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	name := func(cm *corev1.ConfigMap) string {
		if cm == nil {
			return "nil"
		}
		return fmt.Sprintf("%q", cm.Name)
	}
	_ = m.world.note("manage %s: %s to %s", resource.GetName(), name(actual), name(desired))
	return m.child, m.err
}

func TestChildReconciler_ObjectManager(t *testing.T) {
	for name, tc := range map[string]struct {
		given   []client.Object
		desired *corev1.ConfigMap
		manager stubManager
		want    []string
	}{
		"missing": {
			desired: wanted("child"), manager: stubManager{child: wanted("made")},
			want: []string{`manage test: "" to "child"`, `reflect "made"`},
		},
		"existing": {
			given: []client.Object{newConfigMap("there")}, desired: wanted("child"), manager: stubManager{child: wanted("made")},
			want: []string{`manage test: "there" to "child"`, `reflect "made"`},
		},
		"undesired": {
			given: []client.Object{newConfigMap("there")},
			want:  []string{`manage test: "there" to nil`, "reflect nothing"},
		},
		"nothing": {
			want: []string{`manage test: "" to nil`, "reflect nothing"},
		},
		"a child and an error": {
			desired: wanted("child"), manager: stubManager{child: wanted("made"), err: errInvalid},
			want: []string{`manage test: "" to "child"`, `reflect "made": ` + errInvalid.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.given...)
			tc.manager.world = w
			r := newChildReconciler(w, func(r *childReconciler) {
				r.ChildObjectManager = &tc.manager
				r.DesiredChild = desire(tc.desired, nil)
			})
			_, err := r.Reconcile(w.Context(), newResource())
			wantErr(t, nil, err)
			equal(t, "writes", tc.want, w.Writes())
		})
	}
}
