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

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

type childSetReconciler = reconcilers.ChildSetReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]

// identified returns a change that gives a ConfigMap an id.
func identified(id string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"id": id} }
}

// member returns a ConfigMap of a set as a user writes it.
func member(id string, data ...string) *corev1.ConfigMap {
	cm := wanted("child-"+id, data...)
	identified(id)(cm)
	return cm
}

// desireAll returns a DesiredChildren function.
func desireAll(
	err error, children ...*corev1.ConfigMap,
) func(context.Context, *fixture.Resource) ([]*corev1.ConfigMap, error) {
	return func(context.Context, *fixture.Resource) ([]*corev1.ConfigMap, error) {
		copies := []*corev1.ConfigMap{}
		for _, child := range children {
			copies = append(copies, child.DeepCopy())
		}
		return copies, err
	}
}

// newChildSetReconciler returns a reconciler that adds the reflected children to the trace of the world.
func newChildSetReconciler(w *world, edits ...func(*childSetReconciler)) *childSetReconciler {
	return changed(
		newChildSet(func(_ *fixture.Resource, what string) { _ = w.note("reflect %s", what) }), changes(edits...),
	)
}

// childSetFactory returns a reconciler that writes the reflected children to the status of the parent. It may list its
// children once.
func childSetFactory(
	_ *testing.T, tc *subReconcilerCase, c reconcilers.Config,
) reconcilers.SubReconciler[*fixture.Resource] {
	atMostOnce(c, "list", "ConfigMapList")
	return changed(newChildSet(showReflected), tc.Metadata)
}

func newChildSet(reflect func(parent *fixture.Resource, what string)) *childSetReconciler {
	return &childSetReconciler{
		DesiredChildren:    desireAll(nil, member("a"), member("b")),
		IdentifyChild:      func(child *corev1.ConfigMap) string { return child.Labels["id"] },
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
		ReflectChildrenStatusOnParent: func(
			_ context.Context, parent *fixture.Resource, result reconcilers.ChildSetResult[*corev1.ConfigMap],
		) {
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
			what := "[" + strings.Join(parts, " ") + "]"
			if err := result.AggregateError(); err != nil {
				what += " aggregate error " + err.Error()
			}
			reflect(parent, what)
		},
	}
}

func desiringAll(err error, children ...*corev1.ConfigMap) map[string]any {
	return changes(func(r *childSetReconciler) { r.DesiredChildren = desireAll(err, children...) })
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
	parent, leavingParent := newResource(), newResource(terminating, finalizer("hold"))
	a, b, x := newConfigMap("child-a", identified("a")), newConfigMap("child-b", identified("b")), newConfigMap("child-x")
	drifted := newConfigMap("child-a", identified("a"), drift)
	created := func(id string) *corev1.ConfigMap { return rtesting.With(member(id), claimed) }
	reflected := func(what string) *fixture.Resource { return newResource(reflecting(what)) }

	subReconcilerTests{
		// Children are created in the order of their ids, not in the order of DesiredChildren.
		"create": {
			Resource: parent, Metadata: desiringAll(nil, member("b"), member("a")),
			ExpectCreates: objects{created("a"), created("b")},
			ExpectEvents: events{
				eventFor("Created", "child-a"), eventFor("Created", "child-b"),
			}, ExpectResource: reflected("[a=child-a b=child-b]"),
		},
		// Nothing is written.
		"in sync": {
			Resource: parent, GivenObjects: objects{a, b}, ExpectResource: reflected("[a=child-a b=child-b]"),
			ExpectWiring: &rtesting.Wiring{Owns: watched, Tracks: watched, Indexes: indexedByOwner},
		},
		// Drift of one child is corrected. The other child is not written.
		"update": {
			Resource: parent, GivenObjects: objects{drifted, b}, ExpectUpdates: objects{a},
			ExpectEvents: events{eventFor("Updated", "child-a")}, ExpectResource: reflected("[a=child-a b=child-b]"),
		},
		// A child that is not desired is deleted.
		"delete": {
			Resource: parent, GivenObjects: objects{a, b}, Metadata: desiringAll(nil, member("b")),
			ExpectDeletes: deletes("child-a"),
			ExpectEvents:  events{eventFor("Deleted", "child-a")}, ExpectResource: reflected("[a= b=child-b]"),
		},
		// Desired and known children are managed in the order of their ids.
		"create and delete": {
			Resource: parent, GivenObjects: objects{b}, Metadata: desiringAll(nil, member("a"), member("c")),
			ExpectCreates: objects{created("a"), created("c")}, ExpectDeletes: deletes("child-b"),
			ExpectEvents: events{
				eventFor("Created", "child-a"), eventFor("Deleted", "child-b"), eventFor("Created", "child-c"),
			},
			ExpectResource: reflected("[a=child-a b= c=child-c]"),
		},
		// An empty set is also reflected.
		"none desired": {Resource: parent, Metadata: desiringAll(nil), ExpectResource: reflected("[]")},
		// A known child without an id is deleted.
		"without an id": {
			Resource: parent, GivenObjects: objects{x, a, b}, ExpectDeletes: deletes("child-x"),
			ExpectEvents: events{eventFor("Deleted", "child-x")}, ExpectResource: reflected("[= a=child-a b=child-b]"),
		},
		// Both are deleted and a new one is created.
		"two with one id": {
			Resource: parent, GivenObjects: objects{
				newConfigMap("child-1", identified("a")), newConfigMap("child-2", identified("a")), b,
			},
			ExpectDeletes: deletes("child-1", "child-2"), ExpectCreates: objects{created("a")},
			ExpectEvents: events{
				eventFor("Deleted", "child-1"), eventFor("Deleted", "child-2"), eventFor("Created", "child-a"),
			},
			ExpectResource: reflected("[a=child-a b=child-b]"),
		},
		// A terminating child is not counted.
		"one is terminating": {
			Resource: parent, GivenObjects: objects{newConfigMap("child-1", identified("a"), deleting), a, b},
			ExpectResource: reflected("[a=child-a b=child-b]"),
		},
		// Objects of other owners are not children.
		"not ours": {
			Resource: parent, GivenObjects: objects{newConfigMap("child-x", identified("x"), orphan), a, b},
			ExpectResource: reflected("[a=child-a b=child-b]"),
		},
		// Without the list of children, nothing is done.
		"list fails": {
			Resource: parent, WithReactors: failing("list", "ConfigMapList", errTest), ShouldErr: true,
			Verify: failsWith(errTest),
		},
		// If the desired children are unknown, nothing is reflected.
		"desired children fail": {
			Resource: parent, Metadata: desiringAll(errTest), ShouldErr: true, Verify: failsWith(errTest),
		},
		// OnlyReconcileChildStatus reflects all known children and does not change them.
		"only status": {
			Resource: parent, GivenObjects: objects{drifted, newConfigMap("child-x", identified("x"))},
			Metadata: desiringAll(reconcilers.OnlyReconcileChildStatus), ExpectResource: reflected("[a=child-a x=child-x]"),
		},
		// An empty set is reflected.
		"only status of none": {
			Resource: parent, Metadata: desiringAll(reconcilers.OnlyReconcileChildStatus), ExpectResource: reflected("[]"),
		},
		// The remaining children are not managed, and the children before the failure are reflected.
		"one fails": {
			Resource: parent, GivenObjects: objects{a}, Metadata: desiringAll(nil, member("a"), member("b"), member("c")),
			WithReactors: failing("create", "ConfigMap", errTest), ExpectCreates: objects{created("b")},
			ExpectEvents:   events{warning("CreationFailed", `Failed to create ConfigMap "child-b": failure of the test`)},
			ExpectResource: reflected("[a=child-a]"), ShouldErr: true, Verify: failsWith(errTest),
		},
		// The remaining children are managed.
		"one fails for a reason that is reflected": {
			Resource: parent, WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("create", "ConfigMap", rtesting.InduceFailureOpts{Name: "child-a", Error: errInvalid}),
			},
			ExpectCreates: objects{created("a"), created("b")},
			ExpectEvents: events{
				warning("CreationFailed", `Failed to create ConfigMap "child-a": `+errInvalid.Error()),
				eventFor("Created", "child-b"),
			},
			ExpectResource: reflected("[a=! b=child-b] aggregate error " + errInvalid.Error()),
		},
		// All children are deleted, regardless of the desired children.
		"parent is being deleted": {
			Resource: leavingParent, GivenObjects: objects{a, b}, Metadata: desiringAll(nil, member("a"), member("c")),
			ExpectDeletes: deletes("child-a", "child-b"), ExpectEvents: events{
				eventFor("Deleted", "child-a"), eventFor("Deleted", "child-b"),
			},
			ExpectResource: rtesting.With(leavingParent, reflecting("[]")),
		},
		// Children are also deleted if DesiredChildren returns OnlyReconcileChildStatus.
		"parent is being deleted, only status": {
			Resource: leavingParent, GivenObjects: objects{a}, Metadata: desiringAll(reconcilers.OnlyReconcileChildStatus),
			ExpectDeletes: deletes("child-a"), ExpectEvents: events{eventFor("Deleted", "child-a")},
			ExpectResource: rtesting.With(leavingParent, reflecting("[]")),
		},
		// MergeBeforeUpdate replaces an object manager.
		"shorthand": {
			Resource: parent, GivenObjects: objects{drifted},
			Metadata:      changes(func(r *childSetReconciler) { r.ChildObjectManager, r.MergeBeforeUpdate = nil, mergeData }),
			ExpectUpdates: objects{a}, ExpectCreates: objects{created("b")},
			ExpectEvents:   events{eventFor("Updated", "child-a"), eventFor("Created", "child-b")},
			ExpectResource: reflected("[a=child-a b=child-b]"),
		},
		// A child without an id cannot be identified.
		"empty id": {
			Resource: parent, Metadata: desiringAll(nil, member("a"), wanted("child")),
			ShouldErr: true, Verify: failsWithText("desired child id may not be empty"),
		},
		"duplicate id": {
			Resource: parent, Metadata: desiringAll(nil, member("a"), member("b"), member("a")),
			ShouldErr: true, Verify: failsWithText("duplicate child id found: a"),
		},
		// An error of reflecting does not hide an earlier error.
		"reflect fails": {
			Resource: parent, WithReactors: failing("create", "ConfigMap", errTest), ExpectCreates: objects{created("a")},
			Metadata: changes(func(r *childSetReconciler) {
				r.ReflectChildrenStatusOnParentWithError = func(
					context.Context, *fixture.Resource, reconcilers.ChildSetResult[*corev1.ConfigMap],
				) error {
					return errReflect
				}
			}),
			ExpectEvents: events{warning("CreationFailed", `Failed to create ConfigMap "child-a": failure of the test`)},
			ShouldErr:    true, Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				wantErr(t, errTest, err)
				wantErr(t, errReflect, err)
			},
		},
	}.Run(t, scheme, childSetFactory)
}

var errReflect = errors.New("reflecting failed")

func TestRetrieveKnownChildren(t *testing.T) {
	looking := func(look func(ctx context.Context)) map[string]any {
		return changes(func(r *childSetReconciler) {
			r.DesiredChildren = func(ctx context.Context, _ *fixture.Resource) ([]*corev1.ConfigMap, error) {
				look(ctx)
				return []*corev1.ConfigMap{member("a")}, nil
			}
		})
	}
	subReconcilerTests{
		"known children are copies": {
			Resource: newResource(), GivenObjects: objects{
				newConfigMap("child-a", identified("a")),
			}, ExpectResource: newResource(reflecting("[a=child-a]")),
			Metadata: looking(func(ctx context.Context) {
				known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx)
				equal(t, "known children", []*corev1.ConfigMap{newConfigMap("child-a", identified("a"))}, known)
				known[0].Data["key"] = "changed by the function"
				if secrets := reconcilers.RetrieveKnownChildren[*corev1.Secret](ctx); secrets != nil {
					t.Errorf("known children of another kind: %v", secrets)
				}
			}),
		},
		"none": {
			Resource: newResource(), ExpectCreates: objects{
				rtesting.With(member("a"), claimed),
			}, ExpectEvents: events{eventFor("Created", "child-a")},
			Metadata: looking(func(ctx context.Context) {
				if known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](ctx); known == nil || len(known) != 0 {
					t.Errorf("known children = %#v", known)
				}
			}),
			ExpectResource: newResource(reflecting("[a=child-a]")),
		},
	}.Run(t, scheme, childSetFactory)
	if known := reconcilers.RetrieveKnownChildren[*corev1.ConfigMap](newWorld(t).Context()); known != nil {
		t.Errorf("known children outside of a set: %v", known)
	}
}
