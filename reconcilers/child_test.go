// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	"trueup.dev/validation"
)

type (
	childReconciler = reconcilers.ChildReconciler[*fixture.Resource, *corev1.ConfigMap, *corev1.ConfigMapList]
	configMaps      = reconcilers.UpdatingObjectManager[*corev1.ConfigMap]
)

// desire returns a DesiredChild function.
func desire(child *corev1.ConfigMap, err error) func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
	return func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
		if child == nil {
			return nil, err
		}
		return child.DeepCopy(), err
	}
}

// newChildReconciler returns a reconciler that adds the reflected child to the trace of the world.
func newChildReconciler(w *world, edits ...func(*childReconciler)) *childReconciler {
	return changed(newChild(func(_ *fixture.Resource, what string) { _ = w.note("reflect %s", what) }), changes(edits...))
}

// childFactory returns a reconciler that writes the reflected child to the status of the parent. It may list its
// children once.
func childFactory(
	_ *testing.T, tc *subReconcilerCase, c reconcilers.Config,
) reconcilers.SubReconciler[*fixture.Resource] {
	atMostOnce(c, "list", "ConfigMapList")
	return changed(newChild(showReflected), tc.Metadata)
}

func newChild(reflect func(parent *fixture.Resource, what string)) *childReconciler {
	return &childReconciler{
		DesiredChild:       desire(wanted("child"), nil),
		ChildObjectManager: &configMaps{MergeBeforeUpdate: mergeData},
		ReflectChildStatusOnParent: func(_ context.Context, parent *fixture.Resource, child *corev1.ConfigMap, err error) {
			what := "nothing"
			if child != nil {
				what = fmt.Sprintf("%q", child.Name)
			}
			if err != nil {
				what += ": " + err.Error()
			}
			reflect(parent, what)
		},
	}
}

func showReflected(parent *fixture.Resource, what string) {
	parent.Status.Fields = map[string]string{"reflected": what}
}

// reflecting returns a change that sets the reflected child in the status of a resource.
func reflecting(what string) func(*fixture.Resource) {
	return func(r *fixture.Resource) { showReflected(r, what) }
}

// claimed sets the test resource as the owner of a ConfigMap.
func claimed(cm *corev1.ConfigMap) { cm.OwnerReferences = newConfigMap("").OwnerReferences }

// deletes returns deletions of ConfigMaps.
func deletes(names ...string) (refs []rtesting.DeleteRef) {
	for _, name := range names {
		refs = append(refs, rtesting.DeleteRef{Kind: "ConfigMap", Namespace: "default", Name: name})
	}
	return refs
}

// eventFor returns the event for a write of a ConfigMap.
func eventFor(verb, name string) rtesting.Event {
	return normal(verb, fmt.Sprintf("%s ConfigMap %q", verb, name))
}

// withoutOwner makes a ChildReconciler identify its children by name.
func withoutOwner(r *childReconciler) {
	r.SkipOwnerReference = true
	r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name != "other" }
	r.ListOptions = func(_ context.Context, parent *fixture.Resource) []client.ListOption {
		return []client.ListOption{client.InNamespace(parent.Namespace)}
	}
}

func desiring(child *corev1.ConfigMap, err error) map[string]any {
	return changes(func(r *childReconciler) { r.DesiredChild = desire(child, err) })
}

const (
	childCreated = `event default/test Normal Created: Created ConfigMap "child"`
	childUpdated = `event default/test Normal Updated: Updated ConfigMap "child"`
	childDeleted = `event default/test Normal Deleted: Deleted ConfigMap "child"`
)

// The setup of the child reconcilers.
var (
	watched        = []rtesting.Watch{{Object: &corev1.ConfigMap{}}}
	indexedByOwner = []rtesting.Index{{Object: &corev1.ConfigMap{}, Field: reconcilers.OwnerIndexField}}
)

func TestChildReconciler(t *testing.T) {
	parent, leavingParent := newResource(), newResource(terminating, finalizer("hold"))
	creates, reflected, reflectedNothing := objects{
		rtesting.With(wanted("child"), claimed),
	}, newResource(reflecting(`"child"`)), newResource(reflecting("nothing"))
	child, drifted, two := objects{newConfigMap("child")}, objects{newConfigMap("child", drift)}, objects{
		newConfigMap("child-a"), newConfigMap("child-b"),
	}

	subReconcilerTests{
		// A missing child is created and reflected as stored in the server.
		"create": {Resource: parent, ExpectCreates: creates, ExpectEvents: events{createdChild}, ExpectResource: reflected},
		// A child in the desired state is not written.
		"in sync": {
			Resource: parent, GivenObjects: child, ExpectResource: reflected,
			ExpectWiring: &rtesting.Wiring{Owns: watched, Tracks: watched, Indexes: indexedByOwner},
		},
		// Drift is corrected.
		"update": {
			Resource: parent, GivenObjects: drifted, ExpectUpdates: child, ExpectEvents: events{updatedChild},
			ExpectResource: reflected,
		},
		// A child that is no longer desired is deleted, and nil is reflected.
		"delete": {
			Resource: parent, GivenObjects: child, Metadata: desiring(nil, nil),
			ExpectDeletes: deletes("child"), ExpectEvents: events{deletedChild}, ExpectResource: reflectedNothing,
		},
		// No child is a valid desired state.
		"none desired": {Resource: parent, Metadata: desiring(nil, nil), ExpectResource: reflectedNothing},
		// Objects of other owners are not children, even if they are similar.
		"not ours": {
			Resource: parent, GivenObjects: objects{
				newConfigMap("orphan", orphan),
				newConfigMap("of-another", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].UID = "another" }),
				newConfigMap("not-controlled", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].Controller = nil }),
				newConfigMap("elsewhere", func(cm *corev1.ConfigMap) { cm.Namespace = "elsewhere" }),
			},
			ExpectCreates: creates, ExpectEvents: events{createdChild}, ExpectResource: reflected,
		},
		// OurChild distinguishes the children of several reconcilers.
		"of another reconciler": {
			Resource: parent, GivenObjects: objects{newConfigMap("other"), newConfigMap("child")}, ExpectResource: reflected,
			Metadata: changes(func(r *childReconciler) {
				r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name != "other" }
			}),
		},
		// Without owner references, OurChild alone identifies the child.
		"no owner references": {
			Resource: parent, GivenObjects: objects{
				newConfigMap("other"), newConfigMap("child", orphan),
			}, Metadata: changes(withoutOwner),
			ExpectResource: reflected, ExpectWiring: &rtesting.Wiring{Tracks: watched},
		},
		// ListOptions replace the default.
		"own list options": {
			Resource: parent, GivenObjects: objects{
				newConfigMap("there", func(cm *corev1.ConfigMap) {
					cm.Namespace, cm.Labels = "other", map[string]string{"app": "test"}
				}),
				newConfigMap("not-labeled", func(cm *corev1.ConfigMap) { cm.Namespace = "other" }),
				newConfigMap("not-in-other", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"app": "test"} }),
			},
			Metadata: changes(func(r *childReconciler) {
				r.DesiredChild = desire(nil, reconcilers.OnlyReconcileChildStatus)
				r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption {
					return []client.ListOption{client.InNamespace("other"), client.MatchingLabels{"app": "test"}}
				}
			}),
			ExpectResource: newResource(reflecting(`"there"`)),
		},
		// Without the list of children, nothing is done.
		"list fails": {
			Resource: parent, WithReactors: failing("list", "ConfigMapList", errTest), ShouldErr: true,
			Verify: failsWith(errTest),
		},
		// The right child cannot be determined, so all are deleted in the order of the list, and a new one is created.
		"several": {
			Resource: parent, GivenObjects: objects{newConfigMap("child-b"), newConfigMap("child-a"), newConfigMap("child-c")},
			ExpectDeletes: deletes("child-a", "child-b", "child-c"), ExpectCreates: creates, ExpectResource: reflected,
			ExpectEvents: events{
				eventFor("Deleted", "child-a"), eventFor("Deleted", "child-b"), eventFor("Deleted", "child-c"), createdChild,
			},
		},
		// The first failed deletion stops the reconciler.
		"several and a failure": {
			Resource: parent, GivenObjects: two, WithReactors: failing("delete", "ConfigMap", errTest),
			ExpectDeletes: deletes("child-a"),
			ExpectEvents:  events{warning("DeleteFailed", `Failed to delete ConfigMap "child-a": failure of the test`)},
			ShouldErr:     true, Verify: failsWith(errTest),
		},
		// OnlyReconcileChildStatus does not change the child.
		"only status": {
			Resource: parent, GivenObjects: drifted, Metadata: desiring(
				nil, fmt.Errorf("wrapped: %w", reconcilers.OnlyReconcileChildStatus),
			),
			ExpectResource: reflected,
		},
		// A blank object is reflected if the child does not exist.
		"only status of none": {
			Resource: parent, Metadata: desiring(nil, reconcilers.OnlyReconcileChildStatus),
			ExpectResource: newResource(reflecting(`""`)),
		},
		// OnlyReconcileChildStatus does not delete children either.
		"several, only status": {
			Resource: parent, GivenObjects: two, Metadata: desiring(nil, reconcilers.OnlyReconcileChildStatus),
			ExpectResource: newResource(reflecting(`"child-a"`)),
		},
		// If the desired child is unknown, nothing is deleted.
		"several, desired child fails": {
			Resource: parent, GivenObjects: two, Metadata: desiring(nil, errTest), ShouldErr: true, Verify: failsWith(errTest),
		},
		// If the desired child is unknown, nothing is reflected.
		"desired child fails": {
			Resource: parent, GivenObjects: child, Metadata: desiring(nil, errTest), ShouldErr: true, Verify: failsWith(errTest),
		},
		// No child is desired, and nothing is reflected.
		"parent is being deleted": {
			Resource: leavingParent, GivenObjects: child, Metadata: desiring(nil, errTest),
			ExpectDeletes: deletes("child"), ExpectEvents: events{deletedChild},
		},
		// Nothing is done.
		"parent and child are being deleted": {
			Resource: leavingParent, GivenObjects: objects{newConfigMap("child", deleting)},
		},
		// An error that would otherwise be reflected is returned, because nothing is reflected.
		"parent is being deleted and the deletion of the child fails": {
			Resource: leavingParent, GivenObjects: child, WithReactors: failing("delete", "ConfigMap", errInvalid),
			ExpectDeletes: deletes("child"),
			ExpectEvents:  events{warning("DeleteFailed", `Failed to delete ConfigMap "child": `+errInvalid.Error())},
			ShouldErr:     true, Verify: failsWith(errInvalid),
		},
		// The error of ReflectChildStatusOnParentWithError is returned. This function has precedence over the other.
		"reflect fails": {
			Resource: parent, GivenObjects: child, ShouldErr: true, Verify: failsWith(errTest),
			Metadata: changes(func(r *childReconciler) {
				r.ReflectChildStatusOnParentWithError = func(
					context.Context, *fixture.Resource, *corev1.ConfigMap, error,
				) error {
					return errTest
				}
			}),
		},
	}.Run(t, scheme, childFactory)
}

func TestChildReconciler_OwnerReference(t *testing.T) {
	type owners = []metav1.OwnerReference
	ours := metav1.OwnerReference{
		APIVersion: "fixture.trueup.dev/v1", Kind: "Resource", Name: "test", UID: "parent", Controller: new(true),
		BlockOwnerDeletion: new(true),
	}
	another := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "another", UID: "another", Controller: new(true)}
	friend := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "friend", UID: "friend"}
	weak := metav1.OwnerReference{APIVersion: "fixture.trueup.dev/v2", Kind: "Resource", Name: "test", UID: "parent"}
	owned := func(by owners) *corev1.ConfigMap {
		return rtesting.With(wanted("child"), func(cm *corev1.ConfigMap) { cm.OwnerReferences = by })
	}
	created := func(by owners, change ...func(*childReconciler)) subReconcilerCase {
		return subReconcilerCase{
			Resource: newResource(), Metadata: changes(change...), ExpectCreates: objects{owned(by)},
			ExpectEvents: events{createdChild}, ExpectResource: newResource(reflecting(`"child"`)),
		}
	}
	desired := func(by owners) func(*childReconciler) {
		return func(r *childReconciler) { r.DesiredChild = desire(owned(by), nil) }
	}
	denied := func(namespace, text string) subReconcilerCase {
		return subReconcilerCase{
			Resource: newResource(), Metadata: desiring(
				rtesting.With(wanted("child"), func(cm *corev1.ConfigMap) { cm.Namespace = namespace }), nil,
			),
			ShouldErr: true, Verify: failsWithText(text),
		}
	}
	const noOwner = ": manage the child without one, with a Finalizer, ListOptions and OurChild"
	subReconcilerTests{
		"none":                        created(owners{ours}, desired(nil)),
		"of a friend":                 created(owners{friend, ours}, desired(owners{friend})),
		"a controller of their own":   created(owners{another}, desired(owners{another})),
		"ours in another version":     created(owners{ours, friend}, desired(owners{weak, friend})),
		"ours, as the author made it": created(owners{ours}, desired(owners{ours})),
		"skipped":                     created(nil, withoutOwner),
		"of a cluster-scoped child": denied(
			"", "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace default"+noOwner,
		),
		"of a child in another namespace": denied(
			"other", "cross-namespace owner references are disallowed, owner's namespace default, obj's namespace other"+noOwner,
		),
	}.Run(t, scheme, childFactory)

	duck := rtesting.SubReconcilerTestCase[*fixture.Duck]{
		Name:          "of a duck",
		Resource:      rtesting.With(fixture.NewDuck("default", "test"), func(d *fixture.Duck) { d.UID = "parent" }),
		ExpectCreates: objects{owned(owners{ours})}, ExpectEvents: events{createdChild},
	}
	rtesting.SubReconcilerTestSuite[*fixture.Duck]{duck}.Run(t, scheme, func(
		*testing.T, *rtesting.SubReconcilerTestCase[*fixture.Duck], reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Duck] {
		return &reconcilers.ChildReconciler[*fixture.Duck, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChild: func(
				context.Context, *fixture.Duck,
			) (*corev1.ConfigMap, error) {
				return wanted("child"), nil
			},
			MergeBeforeUpdate:          mergeData,
			ReflectChildStatusOnParent: func(context.Context, *fixture.Duck, *corev1.ConfigMap, error) {},
		}
	})
}

func TestChildReconciler_DesiredChildDoesNotMatchOurChild(t *testing.T) {
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
		r.HarmonizeImmutableFields = func(current, desired *corev1.ConfigMap) {
			desired.Data["immutable"] = current.Data["immutable"]
		}
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
	want := []string{
		added, patched, "create ConfigMap default/child", "track ConfigMap default/child for default/test", childCreated,
		`reflect "child"`,
	}
	equal(t, "writes: the finalizer is added first, and a child without an owner reference is tracked", want, w.Writes())
	equal(t, "owner references: a finalizer implies that there are none", nil, stored(w, wanted("child")).OwnerReferences)
}

func TestChildReconciler_Validate(t *testing.T) {
	// This type has the name that the reference documents.
	type reconciler = reconcilers.ChildReconciler[*fixture.Resource, *corev1.Pod, *corev1.PodList]
	complete := func(changes ...func(*reconciler)) *reconciler {
		r := &reconciler{
			DesiredChild:               func(context.Context, *fixture.Resource) (*corev1.Pod, error) { return nil, nil },
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *corev1.Pod, error) {},
			ChildObjectManager: &reconcilers.UpdatingObjectManager[*corev1.Pod]{
				MergeBeforeUpdate: func(_, _ *corev1.Pod) {},
			},
		}
		for _, change := range changes {
			change(r)
		}
		return r
	}
	ours := func(*fixture.Resource, *corev1.Pod) bool { return true }
	options := func(context.Context, *fixture.Resource) []client.ListOption { return nil }
	merge := func(_, _ *corev1.Pod) {}
	const prefix = `ChildReconciler "PodChildReconciler" `

	for name, tc := range map[string]struct {
		reconciler *reconciler
		recursive  bool
		want       string
	}{
		"valid":            {reconciler: complete()},
		"valid, recursive": {reconciler: complete(), recursive: true},
		"valid with ReflectChildStatusOnParent": {reconciler: complete(func(r *reconciler) {
			r.ReflectChildStatusOnParent = nil
			r.ReflectChildStatusOnParentWithError = func(
				context.Context, *fixture.Resource, *corev1.Pod, error,
			) error {
				return nil
			}
		})},
		"valid by MergeBeforeUpdate": {reconciler: complete(func(r *reconciler) {
			r.ChildObjectManager, r.MergeBeforeUpdate = nil, merge
		}), recursive: true},
		"valid without owner references": {reconciler: complete(func(r *reconciler) {
			r.SkipOwnerReference, r.OurChild, r.ListOptions = true, ours, options
		})},
		"empty": {reconciler: &reconciler{}, want: prefix + "must implement DesiredChild"},
		"named": {reconciler: &reconciler{Name: "test"}, want: `ChildReconciler "test" must implement DesiredChild`},
		"no reflect": {
			reconciler: complete(func(r *reconciler) { r.ReflectChildStatusOnParent = nil }),
			want:       prefix + "must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError",
		},
		"no OurChild": {
			reconciler: complete(func(r *reconciler) { r.SkipOwnerReference, r.ListOptions = true, options }),
			want:       prefix + "must implement OurChild since owner references are not used",
		},
		"no ListOptions": {
			reconciler: complete(func(r *reconciler) { r.SkipOwnerReference, r.OurChild = true, ours }),
			want:       prefix + "must implement ListOptions since owner references are not used",
		},
		"a finalizer implies no owner references": {
			reconciler: complete(func(r *reconciler) {
				r.ChildObjectManager, r.MergeBeforeUpdate, r.Finalizer = nil, merge, "f"
			}),
			want: prefix + "must implement OurChild since owner references are not used",
		},
		"no manager": {
			reconciler: complete(func(r *reconciler) { r.ChildObjectManager = nil }),
			want:       prefix + "must implement ChildObjectManager",
		},
		"both a manager and its fields": {
			reconciler: complete(func(r *reconciler) { r.MergeBeforeUpdate = merge }),
			want:       prefix + "may not implement both ChildObjectManager and MergeBeforeUpdate",
		},
		"invalid manager": {
			reconciler: complete(func(r *reconciler) {
				r.ChildObjectManager = &reconcilers.UpdatingObjectManager[*corev1.Pod]{}
			}),
		},
		"invalid manager, recursive": {
			reconciler: complete(func(r *reconciler) {
				r.ChildObjectManager = &reconcilers.UpdatingObjectManager[*corev1.Pod]{}
			}),
			recursive: true,
			want:      prefix + `must have a valid ChildObjectManager: UpdatingObjectManager "" must define MergeBeforeUpdate`,
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

	t.Run("order", func(t *testing.T) {
		err := (&reconciler{SkipOwnerReference: true}).SetupWithManager(context.Background(), nil, nil)
		wantText(t, prefix+"must implement DesiredChild\n"+
			prefix+"must implement ReflectChildStatusOnParent or ReflectChildStatusOnParentWithError\n"+
			prefix+"must implement OurChild since owner references are not used\n"+
			prefix+"must implement ListOptions since owner references are not used\n"+
			prefix+"must implement ChildObjectManager"+adviceToMerge, err)
	})
	t.Run("every field of the default manager", func(t *testing.T) {
		r := complete(func(r *reconciler) {
			r.MergeBeforeUpdate, r.HarmonizeImmutableFields, r.Finalizer = merge, merge, "f"
			r.Sanitize = func(pod *corev1.Pod) any { return pod.Name }
			r.OurChild, r.ListOptions = ours, options
		})
		wantText(t, prefix+"may not implement both ChildObjectManager and MergeBeforeUpdate\n"+
			prefix+"may not implement both ChildObjectManager and HarmonizeImmutableFields\n"+
			prefix+"may not implement both ChildObjectManager and Sanitize\n"+
			prefix+"may not implement both ChildObjectManager and Finalizer", r.SetupWithManager(context.Background(), nil, nil))
	})
}

// A child, or a conflicting object, may be created and deleted between two lists of the cache. No watch event is
// delivered then, so the request must be requeued.
func TestChild_ObjectsThatNeverReachTheCache(t *testing.T) {
	for _, c := range []struct {
		name   string
		parent *fixture.Resource
		child  *corev1.ConfigMap
		edit   func(*childReconciler)
		// after runs between the first request and the next.
		after func(w *world, child *corev1.ConfigMap) error
		done  func(w *world, parent *fixture.Resource, child *corev1.ConfigMap) bool
	}{
		{
			name: "child of a parent that is deleted", parent: newResource(finalizer("test-finalizer"), terminating),
			child: newConfigMap("child"),
			edit: func(r *childReconciler) {
				withoutOwner(r)
				r.ChildObjectManager, r.MergeBeforeUpdate, r.Finalizer = nil, mergeData, "test-finalizer"
			},
			after: func(*world, *corev1.ConfigMap) error { return nil },
			done:  func(w *world, parent *fixture.Resource, _ *corev1.ConfigMap) bool { return stored(w, parent) == nil },
		},
		{
			name: "object of another owner", parent: newResource(settled), child: newConfigMap("child", orphan),
			edit:  func(*childReconciler) {},
			after: func(w *world, child *corev1.ConfigMap) error { return w.Server.Delete(context.Background(), child) },
			done: func(w *world, _ *fixture.Resource, child *corev1.ConfigMap) bool {
				found := stored(w, child)
				return found != nil && len(found.OwnerReferences) > 0
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.parent, c.child)
			w.Unseen = func(obj client.Object) bool {
				_, ok := obj.(*corev1.ConfigMap)
				return ok
			}
			events := newEventCache(w.Scheme)
			mgr := newManager(t, w, events)
			config := configFor(w, mgr)
			config.StaleReadsTimeout = 20 * time.Millisecond
			ended, goOn := make(requests, 10), make(chan struct{}, 1)
			r := &resourceReconciler{
				Config: config, Reconciler: newChildReconciler(w, c.edit),
				AfterReconcile: func(
					_ context.Context, req reconcilers.Request, res reconcilers.Result, err error,
				) (reconcilers.Result, error) {
					ended <- req
					<-goOn
					return res, err
				},
			}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			start(t, mgr)
			t.Cleanup(func() { close(goOn) })
			events.changed(c.parent)

			ended.next(t, "the event of the parent")
			wantErr(t, nil, c.after(w, c.child))
			goOn <- struct{}{}
			ended.next(t, "nothing at all")
			if !c.done(w, c.parent, c.child) {
				t.Errorf("the request had no effect: %v", w.Trace())
			}
		})
	}
}
