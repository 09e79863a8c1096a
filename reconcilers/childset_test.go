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
	"trueup.dev/validation"
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

// finalized configures a set whose children are only deleted because of a finalizer.
func finalized(r *childSetReconciler) {
	withoutOwners(r)
	r.SkipOwnerReference = false
	r.Finalizer = "test-finalizer"
}

func TestChildSetReconciler_Finalizer(t *testing.T) {
	const list = "list ConfigMap in default labels id"
	const live = "live list ConfigMap in default labels id"
	parent := newResource()
	w := newWorld(t, parent)
	desired := []*corev1.ConfigMap{member("a"), member("b")}
	r := newChildSetReconciler(w, finalized, func(r *childSetReconciler) {
		r.DesiredChildren = func(ctx context.Context, parent *fixture.Resource) ([]*corev1.ConfigMap, error) {
			return desireAll(nil, desired...)(ctx, parent)
		}
	})
	reconcile := func(what string, want ...string) {
		t.Helper()
		_, err := r.Reconcile(w.Context(), stored(w, parent))
		wantErr(t, nil, err)
		equal(t, "trace: "+what, want, w.Trace())
	}

	reconcile(
		"the finalizer comes first", list, added, patched, "create ConfigMap default/child-a", eventOn("Created", "child-a"),
		"create ConfigMap default/child-b", eventOn("Created", "child-b"), "reflect [a=child-a b=child-b]",
	)
	equal(t, "owner references", nil, stored(w, desired[0]).OwnerReferences)
	reconcile("children without owner references are found again", list, "reflect [a=child-a b=child-b]")
	desired = desired[:1]
	reconcile(
		"an undesired child is deleted", list, "delete ConfigMap default/child-b", eventOn("Deleted", "child-b"),
		"reflect [a=child-a b=]",
	)

	// One of the two children is still terminating when the parent is deleted.
	held := stored(w, desired[0])
	held.Finalizers = []string{"hold.example.com/on"}
	wantErr(t, nil, w.Server.Update(context.Background(), held))
	desired = append(desired, member("c"))
	reconcile(
		"one more child", list, "create ConfigMap default/child-c", eventOn("Created", "child-c"),
		"reflect [a=child-a c=child-c]",
	)
	wantErr(t, nil, w.Server.Delete(context.Background(), parent))
	reconcile(
		"children go, the finalizer stays", list, live,
		"delete ConfigMap default/child-a", eventOn("Deleted", "child-a"), "delete ConfigMap default/child-c",
		eventOn("Deleted", "child-c"), "reflect []",
	)
	reconcile("one child still exists", list, live, "reflect []")
	held = stored(w, held)
	held.Finalizers = nil
	wantErr(t, nil, w.Server.Update(context.Background(), held))

	version := stored(w, parent).ResourceVersion
	reconcile(
		"no child exists", list, live, "reflect []",
		fmt.Sprintf(
			`patch Resource default/test application/merge-patch+json {"metadata":{"finalizers":null,"resourceVersion":"%s"}}`,
			version,
		), patched,
	)
	if after := stored(w, parent); after != nil {
		t.Errorf("the parent still exists: %v", after)
	}
}

// DesiredChildren is not called for a deleted parent: an error must not block the deletion of the children and the
// parent.
func TestChildSetReconciler_DoesNotCallDesiredChildrenForADeletedParent(t *testing.T) {
	held := newResource(finalizer("test-finalizer"), terminating)
	undecided := func(r *childSetReconciler) {
		r.DesiredChildren = func(context.Context, *fixture.Resource) ([]*corev1.ConfigMap, error) {
			t.Error("DesiredChildren was called")
			return nil, errTest
		}
	}
	child := newConfigMap("child-a", identified("a"))
	released := rtesting.With(held, reflecting("[]"), func(r *fixture.Resource) {
		r.Finalizers, r.ResourceVersion = nil, "1000"
	})
	subReconcilerTests{
		"with a finalizer": {
			Resource: held, Metadata: changes(finalized, undecided), GivenObjects: objects{child},
			ExpectResource: rtesting.With(held, reflecting("[]")), ExpectDeletes: deletes("child-a"), ExpectEvents: events{
				eventFor("Deleted", "child-a"),
			},
			AdditionalReconciles: []subReconcilerCase{{
				Name: "no child left", Resource: held, ExpectResource: released,
				ExpectPatches: patches{finalizers()}, ExpectEvents: events{finalizerPatched},
			}},
		},
		"with the finalizer of another reconciler": {
			Resource: held, Metadata: changes(withoutOwners, undecided), GivenObjects: objects{child},
			ExpectResource: rtesting.With(held, reflecting("[]")), ExpectDeletes: deletes("child-a"), ExpectEvents: events{
				eventFor("Deleted", "child-a"),
			},
		},
	}.Run(t, scheme, childSetFactory)
}

// Objects that only the server has have not reached the cache yet.
func TestChildren_AreListedFromTheServerBeforeAFinalizerIsCleared(t *testing.T) {
	held, parent := newResource(finalizer("test-finalizer")), newResource(finalizer("test-finalizer"), terminating)
	// The child is deleted and the finalizer is kept. It is removed after the child.
	look := func(parent *fixture.Resource, metadata map[string]any, reflect ...func(*fixture.Resource)) subReconcilerCase {
		without := append(
			[]func(*fixture.Resource){func(r *fixture.Resource) { r.Finalizers, r.ResourceVersion = nil, "1000" }}, reflect...,
		)
		return subReconcilerCase{
			Resource: parent, Metadata: metadata, Realistic: true, APIGivenObjects: objects{
				newConfigMap("child", identified("a")),
			},
			ExpectResource: rtesting.With(parent, reflect...), ExpectDeletes: deletes("child"),
			ExpectEvents: events{deletedChild},
			AdditionalReconciles: []subReconcilerCase{{
				Name: "the child no longer exists", Resource: parent, ExpectResource: rtesting.With(parent, without...),
				ExpectPatches: patches{finalizers()}, ExpectEvents: events{finalizerPatched},
			}},
		}
	}
	manager := &configMaps{Finalizer: "test-finalizer", MergeBeforeUpdate: mergeData}
	unwanted := changes(func(r *childReconciler) { r.DesiredChild, r.ChildObjectManager = desire(nil, nil), manager })
	below := look(parent, changes(withoutOwner))
	below.AdditionalReconciles = []subReconcilerCase{{Name: "the child no longer exists", Resource: parent}}
	subReconcilerTests{
		"child with a finalizer": look(parent, changes(withoutOwner, func(r *childReconciler) {
			r.ChildObjectManager, r.MergeBeforeUpdate, r.Finalizer = nil, mergeData, "test-finalizer"
		})),
		"child whose object manager has a finalizer": look(
			parent, changes(func(r *childReconciler) { r.ChildObjectManager = manager }),
		),
		"child that is not desired any more": look(held, unwanted, reflecting("nothing")),
		"child below a finalizer":            below,
		"several that were just deleted": {
			Resource: held, Metadata: changes(func(r *childReconciler) {
				r.ChildObjectManager, r.DesiredChild = manager, desire(nil, nil)
				r.OurChild = func(*fixture.Resource, *corev1.ConfigMap) bool { return true }
			}), GivenObjects: objects{newConfigMap("child-a"), newConfigMap("child-b")},
			ExpectDeletes: deletes("child-a", "child-b"), ExpectEvents: events{
				eventFor("Deleted", "child-a"), eventFor("Deleted", "child-b"),
			},
			ExpectResource: rtesting.With(held, reflecting("nothing")),
		},
	}.Run(t, scheme, childFactory)
	subReconcilerTests{
		"child set": look(parent, changes(finalized), reflecting("[]")),
		"child set whose object manager has a finalizer": look(
			parent, changes(func(r *childSetReconciler) { r.ChildObjectManager = manager }), reflecting("[]"),
		),
	}.Run(t, scheme, childSetFactory)

	t.Run("list fails", func(t *testing.T) {
		w := newWorld(t, parent).Fail("live list", errTest)
		_, err := newChildSetReconciler(w, finalized).Reconcile(w.Context(), parent.DeepCopy())
		wantErr(t, errTest, err)
		equal(t, "writes", nil, w.Writes())
	})
	t.Run("list is not needed", func(t *testing.T) {
		w := newWorld(t)
		_, err := newChildReconciler(w, func(r *childReconciler) {
			r.DesiredChild = desire(nil, nil)
		}).Reconcile(w.Context(), newResource())
		wantErr(t, nil, err)
		equal(t, "live calls", 0, w.Count("live"))
	})
	t.Run("desired child is called once", func(t *testing.T) {
		w := newWorld(t, newResource(finalizer("test-finalizer")))
		asked := 0
		r := newChildReconciler(w, func(r *childReconciler) {
			r.ChildObjectManager = &configMaps{Finalizer: "test-finalizer", MergeBeforeUpdate: mergeData}
			r.DesiredChild = func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
				asked++
				return wanted("child"), nil
			}
		})
		_, err := r.Reconcile(w.Context(), newResource(finalizer("test-finalizer")))
		wantErr(t, nil, err)
		equal(t, "calls of DesiredChild", 1, asked)
		equal(t, "live calls", 0, w.Count("live"))
		equal(t, "creates", 1, w.Count("create"))
	})
}

func TestChildSetReconciler_Validate(t *testing.T) {
	complete := func(changes ...func(*childSetReconciler)) *childSetReconciler {
		return newChildSetReconciler(newWorld(t), changes...)
	}
	const prefix = `ChildSetReconciler "ConfigMapChildSetReconciler" `
	for name, tc := range map[string]struct {
		reconciler *childSetReconciler
		recursive  bool
		want       string
	}{
		"valid":                          {reconciler: complete()},
		"valid, recursive":               {reconciler: complete(), recursive: true},
		"valid without owner references": {reconciler: complete(withoutOwners)},
		"valid with a finalizer":         {reconciler: complete(finalized)},
		"empty": {
			reconciler: &childSetReconciler{}, want: prefix + "must implement DesiredChildren",
		},
		"named": {
			reconciler: &childSetReconciler{Name: "test"}, want: `ChildSetReconciler "test" must implement DesiredChildren`,
		},
		"no reflect": {
			reconciler: complete(func(r *childSetReconciler) { r.ReflectChildrenStatusOnParent = nil }),
			want:       prefix + "must implement ReflectChildrenStatusOnParent or ReflectChildrenStatusOnParentWithError",
		},
		"no OurChild": {
			reconciler: complete(withoutOwners, func(r *childSetReconciler) { r.OurChild = nil }),
			want:       prefix + "must implement OurChild since owner references are not used",
		},
		"no ListOptions, with a finalizer": {
			reconciler: complete(finalized, func(r *childSetReconciler) { r.ListOptions = nil }),
			want:       prefix + "must implement ListOptions since owner references are not used",
		},
		"no IdentifyChild": {
			reconciler: complete(func(r *childSetReconciler) { r.IdentifyChild = nil }),
			want:       prefix + "must implement IdentifyChild",
		},
		"no manager": {
			reconciler: complete(func(r *childSetReconciler) { r.ChildObjectManager = nil }),
			want:       prefix + "must implement ChildObjectManager",
		},
		"both a manager and its fields": {
			reconciler: complete(func(r *childSetReconciler) { r.Sanitize = func(*corev1.ConfigMap) any { return nil } }),
			want:       prefix + "may not implement both ChildObjectManager and Sanitize",
		},
		"invalid manager": {
			reconciler: complete(func(r *childSetReconciler) { r.ChildObjectManager = &configMaps{} }),
		},
		"invalid manager, recursive": {
			reconciler: complete(func(r *childSetReconciler) { r.ChildObjectManager = &configMaps{} }),
			recursive:  true,
			want:       prefix + `must have a valid ChildObjectManager: UpdatingObjectManager "" must define MergeBeforeUpdate`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			if tc.recursive {
				ctx = validation.WithRecursive(newWorld(t).Context())
			}
			wantText(t, tc.want, tc.reconciler.Validate(ctx))
		})
	}
	wantText(t, prefix+"must implement DesiredChildren\n"+
		prefix+"must implement ReflectChildrenStatusOnParent or ReflectChildrenStatusOnParentWithError\n"+
		prefix+"must implement OurChild since owner references are not used\n"+
		prefix+"must implement ListOptions since owner references are not used\n"+
		prefix+"must implement IdentifyChild\n"+
		prefix+"must implement ChildObjectManager"+adviceToMerge, (&childSetReconciler{
		Finalizer: "f",
	}).SetupWithManager(context.Background(), nil, nil))
}

func TestChildSetReconciler_CacheHasOnlySomeChildren(t *testing.T) {
	parent := newResource(finalizer("test-finalizer"), terminating)
	deleted := events{eventFor("Deleted", "child-a"), eventFor("Deleted", "child-b")}
	cases := subReconcilerTests{
		"set below a finalizer": {
			Metadata: changes(withoutOwners), ExpectEvents: append(deleted, finalizerPatched),
			ExpectPatches:  patches{finalizers()},
			ExpectResource: newResource(terminating, reflecting("[]"), func(r *fixture.Resource) { r.ResourceVersion = "1000" }),
		},
		"set with a finalizer": {
			Metadata: changes(finalized), ExpectEvents: deleted, ExpectResource: rtesting.With(parent, reflecting("[]")),
		},
	}
	inAll(cases, func(_ string, tc *subReconcilerCase) {
		tc.Realistic, tc.Resource, tc.ExpectDeletes = true, parent, deletes("child-a", "child-b")
		tc.GivenObjects, tc.APIGivenObjects = objects{
			newConfigMap("child-a", identified("a")),
		}, objects{newConfigMap("child-b", identified("b"))}
	}).Run(t, scheme, func(
		t *testing.T, tc *subReconcilerCase, c reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		set := childSetFactory(t, tc, c)
		if tc.ExpectPatches == nil {
			return set
		}
		return &reconcilers.WithFinalizer[*fixture.Resource]{Finalizer: "test-finalizer", Reconciler: set}
	})
}

func TestChildReconciler_DoesNotSendCacheFieldSelectorsToTheServer(t *testing.T) {
	parent := newResource(finalizer("test-finalizer"), terminating)
	w := newWorld(t, parent, newConfigMap("child"))
	r := newChildReconciler(w, withoutOwner, func(r *childReconciler) {
		r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption {
			return []client.ListOption{
				client.InNamespace("default"), client.MatchingFields{"metadata.name": "child", ownerDataField: "test"},
			}
		}
	})
	_, err := r.Reconcile(w.Context(), parent.DeepCopy())
	wantErr(t, nil, err)
	equal(t, "live list", "live list ConfigMap in default fields metadata.name=child", w.Trace()[1])
}

func TestChildSetReconciler_ReflectingDoesNotSilenceAChildError(t *testing.T) {
	set := newChildSet(nil)
	set.ReflectChildrenStatusOnParentWithError = func(
		_ context.Context, parent *fixture.Resource, _ reconcilers.ChildSetResult[*corev1.ConfigMap],
	) error {
		ran(parent)
		return reconcilers.ErrHaltSubReconcilers
	}
	tc := rtesting.ReconcilerTestCase{
		Request: testRequest, GivenObjects: objects{
			newResource(settled),
		}, StatusSubResourceTypes: hasStatus, Metadata: reconciling(set),
		WithReactors: failing("create", "ConfigMap", errTest), ExpectCreates: objects{rtesting.With(member("a"), claimed)},
		ExpectEvents: append(
			events{warning("CreationFailed", `Failed to create ConfigMap "child-a": failure of the test`)}, statusUpdated...,
		),
		ExpectStatusUpdates: objects{newResource(settled, ran)}, ShouldErr: true, Verify: failsWith(errTest),
	}
	tc.Run(t, scheme, resourceFactory)
}
