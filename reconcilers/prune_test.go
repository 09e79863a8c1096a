// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

const inventoryKey = "fixture.trueup.dev/inventory"

type prune = reconcilers.Prune[*fixture.Resource]

// inventoried puts a ConfigMap into the inventory of the test resource.
func inventoried(cm *corev1.ConfigMap) {
	cm.Labels = map[string]string{inventoryKey: "parent"}
	marked("ConfigMap/default/" + cm.Name + "/parent/owned")(cm)
}

// marked sets the mark of a ConfigMap. It names the object for which it was written.
func marked(mark string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { metav1.SetMetaDataAnnotation(&cm.ObjectMeta, inventoryKey, mark) }
}

// neverOwned is for objects that were declared without an owner reference.
func neverOwned(cm *corev1.ConfigMap) { marked("ConfigMap/default/" + cm.Name + "/parent")(cm) }

// unmarked is for objects that a version without marks has written.
func unmarked(cm *corev1.ConfigMap) { delete(cm.Annotations, inventoryKey) }

// recorded sets the inventory of a resource.
func recorded(record string) func(*fixture.Resource) {
	return func(r *fixture.Resource) { metav1.SetMetaDataAnnotation(&r.ObjectMeta, inventoryKey, record) }
}

// records is the patch that sets the inventory of the resource.
func records(record string) patches {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{inventoryKey: record}, "resourceVersion": "999",
	}})
	return patches{{
		Group: fixture.GroupVersion.Group, Kind: "Resource", Namespace: "default", Name: "test",
		PatchType: types.MergePatchType, Patch: patch,
	}}
}

var brokenInventory = warning("InventoryBroken", "The annotation fixture.trueup.dev/inventory has been changed and is "+
	"not an inventory: invalid character 'k' looking for beginning of value. It is written again, without what only a "+
	"former version has recorded")

func inventoryOf(uid string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Labels[inventoryKey] = uid }
}

// controlledBy makes another resource the controller of a ConfigMap.
func controlledBy(uid types.UID) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].UID = uid }
}

func TestPrune(t *testing.T) {
	const inRecord = `{"kinds":["ConfigMap"]}`
	deletes := func(names ...string) []rtesting.DeleteRef {
		refs := []rtesting.DeleteRef{}
		for _, name := range names {
			refs = append(refs, rtesting.DeleteRef{Kind: "ConfigMap", Namespace: "default", Name: name})
		}
		return refs
	}
	// The child and one object beside it, which the edits change.
	beside := func(edits ...func(*corev1.ConfigMap)) objects {
		former := newConfigMap("former", inventoried)
		for _, edit := range edits {
			edit(former)
		}
		return objects{newConfigMap("child", inventoried), former}
	}
	child := func() subReconciler { return newChild(func(*fixture.Resource, string) {}) }
	none := reconcilers.Sequence[*fixture.Resource]{}
	then := func(other subReconciler) subReconciler {
		return reconcilers.Sequence[*fixture.Resource]{child(), other}
	}
	under := func(inner subReconciler) map[string]any {
		return map[string]any{"reconciler": &prune{Inventory: inventoryKey, Reconciler: inner}}
	}
	fails := &syncReconciler{Sync: func(context.Context, *fixture.Resource) error { return errTest }}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const untilNextRun = 4164689723062 * time.Nanosecond // it depends on the UID
	forbidden := apierrs.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errTest)

	pruned := subReconcilerCase{
		Resource: newResource(recorded(inRecord)), GivenObjects: beside(), Metadata: under(child()), Now: now,
		ExpectDeletes: deletes("former"), ExpectEvents: events{eventFor("Deleted", "former")},
	}
	kept := pruned
	kept.ExpectDeletes, kept.ExpectEvents = nil, nil
	with := func(tc subReconcilerCase, edit func(tc *subReconcilerCase)) subReconcilerCase {
		edit(&tc)
		return tc
	}
	inner := func(reconciler subReconciler) subReconcilerCase {
		return with(kept, func(tc *subReconcilerCase) { tc.Metadata = under(reconciler) })
	}
	given := func(edits ...func(*corev1.ConfigMap)) subReconcilerCase {
		return with(kept, func(tc *subReconcilerCase) { tc.GivenObjects = beside(edits...) })
	}
	gone := newResource(
		recorded(`{"kinds":["ConfigMap"],"finalizers":["test-finalizer"]}`), finalizer("test-finalizer"), terminating,
	)
	inAll(subReconcilerTests{
		"the first child is labeled and recorded": {
			Resource: newResource(), Metadata: under(child()), Now: now,
			ExpectPatches: records(inRecord), ExpectResource: newResource(recorded(inRecord), patchedOnce),
			ExpectCreates: objects{newConfigMap("child", inventoried, func(cm *corev1.ConfigMap) {
				cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			})},
			ExpectEvents: events{createdChild},
		},
		"a child from before is labeled, although its labels are not merged": {
			Resource: newResource(recorded(inRecord)), GivenObjects: objects{newConfigMap("child")}, Now: now,
			Metadata: under(changed(child().(*childReconciler), changes(func(r *childReconciler) {
				r.ChildObjectManager = &configMaps{
					MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				}
			}))),
			ExpectUpdates: objects{newConfigMap("child", inventoried)}, ExpectEvents: events{updatedChild},
		},
		"what is not declared is deleted": pruned,
		"nothing is deleted after an error": with(inner(then(fails)), func(tc *subReconcilerCase) {
			tc.ShouldErr = true
		}),
		"nothing is deleted after an error that was caught": inner(&reconcilers.TryCatch[*fixture.Resource]{
			Try: then(fails),
			Catch: func(context.Context, *fixture.Resource, reconcilers.Result, error) (reconcilers.Result, error) {
				return reconcilers.Result{}, nil
			},
		}),
		"nothing is deleted if a step was left out": with(
			inner(&reconcilers.Periodic[*fixture.Resource]{
				Interval: time.Hour, Reconciler: child(),
				LastRun: func(context.Context, *fixture.Resource) time.Time { return now },
			}), func(tc *subReconcilerCase) { tc.ExpectedResult = reconcilers.Result{RequeueAfter: untilNextRun} }),
		"nothing is deleted if only the status is reconciled": inner(changed(
			child().(*childReconciler), changes(func(r *childReconciler) {
				r.DesiredChild = desire(nil, reconcilers.OnlyReconcileChildStatus)
			}),
		)),
		"nothing is deleted after a reflected error": with(kept, func(tc *subReconcilerCase) {
			tc.GivenObjects = objects{newConfigMap("former", inventoried)}
			tc.WithReactors = failing("create", "ConfigMap", errForbidden)
			tc.ExpectEvents = events{warning("CreationFailed", `Failed to create ConfigMap "child": `+errForbidden.Error())}
			tc.ExpectCreates = objects{newConfigMap("child", inventoried, func(cm *corev1.ConfigMap) {
				cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			})}
		}),
		"an object without the label stays":                    given(orphan, func(cm *corev1.ConfigMap) { cm.Labels = nil }),
		"an object of another inventory stays":                 given(orphan, inventoryOf("other")),
		"an object that another resource adopted stays":        given(controlledBy("other")),
		"an object that is being deleted is not deleted again": given(deleting),
		"children below another config are not in the inventory": {
			Resource: newResource(recorded(`{}`)), Now: now,
			Metadata: under(&withConfig{
				Config:     func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) { return c, nil },
				Reconciler: child(),
			}),
			ExpectCreates: objects{newConfigMap("child", func(cm *corev1.ConfigMap) {
				cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "", "", metav1.Time{}
			})},
			ExpectEvents: events{createdChild},
		},
		"a kind that no reconciler manages is listed until a minute has passed": {
			Resource:     newResource(recorded(inRecord)),
			GivenObjects: objects{newConfigMap("former", inventoried)}, Metadata: under(none), Now: now,
			ExpectDeletes: deletes("former"), ExpectEvents: events{eventFor("Deleted", "former")},
			ExpectedResult: reconcilers.Result{RequeueAfter: 10 * time.Second},
			AdditionalReconciles: []subReconcilerCase{
				{
					Resource: newResource(recorded(inRecord)), Now: now.Add(10 * time.Second),
					ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
				},
				{
					Resource: newResource(recorded(inRecord)), Now: now.Add(time.Minute),
					ExpectedResult: reconcilers.Result{RequeueAfter: 10 * time.Second},
				},
				{
					Resource: newResource(recorded(inRecord)), Now: now.Add(70 * time.Second),
					ExpectPatches: records(`{}`), ExpectResource: newResource(recorded(`{}`), patchedOnce),
				},
			},
		},
		"a permission that is missing is reported": {
			Resource: newResource(recorded(inRecord)), GivenObjects: beside(), Metadata: under(none), Now: now,
			WithClientBuilder: failingList(forbidden),
			ExpectEvents: events{warning("PruneFailed", "Not allowed to list or delete ConfigMap: keep these permissions "+
				"until the objects with the label fixture.trueup.dev/inventory=parent are gone")},
		},
		"a failure is returned": {
			Resource: newResource(recorded(inRecord)), GivenObjects: beside(), Metadata: under(none), Now: now,
			WithClientBuilder: failingList(errTest), ShouldErr: true, Verify: failsWith(errTest),
		},
		"a kind that does not exist any more is forgotten": {
			Resource: newResource(recorded(`{"kinds":["Gone.example.com"]}`)), Metadata: under(none), Now: now,
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"an annotation that was changed is reported and written again": {
			Resource: newResource(recorded(`kinds`)), Metadata: under(none), Now: now,
			ExpectPatches: records(`{}`), ExpectResource: newResource(recorded(`{}`), patchedOnce),
			ExpectEvents: events{brokenInventory},
		},
		"an annotation that was changed does not block a deletion": {
			Resource: newResource(recorded(`kinds`), finalizer("test-finalizer"), terminating), Now: now,
			Metadata: under(&reconcilers.WithFinalizer[*fixture.Resource]{
				Finalizer: "test-finalizer", Reconciler: none,
			}),
			ExpectPatches:  patches{finalizers()},
			ExpectResource: newResource(recorded(`kinds`), terminating, patchedOnce),
			ExpectEvents:   events{brokenInventory, finalizerPatched},
		},
		"what is recorded may be unsorted, and empty": {
			Resource: newResource(recorded(`{"kinds":["Secret","","ConfigMap"]}`)), GivenObjects: beside(),
			Metadata: under(child()), Now: now,
			ExpectDeletes: deletes("former"), ExpectEvents: events{eventFor("Deleted", "former")},
			ExpectedResult: reconcilers.Result{RequeueAfter: 10 * time.Second},
		},
		"a resource without a UID has no inventory": {
			Resource: newResource(func(r *fixture.Resource) { r.UID = "" }), Metadata: under(none), ShouldErr: true,
			Verify: failsWithText(`Resource "test" has no UID, so it has no inventory`),
		},
		"with --cascade=orphan, what a deleted resource owns stays": {
			Resource:     newResource(recorded(inRecord), finalizer(metav1.FinalizerOrphanDependents), terminating),
			GivenObjects: objects{newConfigMap("former", inventoried)}, Metadata: under(none), Now: now,
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"with --cascade=orphan, what a deleted resource has owned stays": {
			Resource:     newResource(recorded(inRecord), finalizer("test-finalizer"), terminating),
			GivenObjects: objects{newConfigMap("former", inventoried, orphan)}, Metadata: under(none), Now: now,
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"with --cascade=orphan, what has no mark stays": {
			Resource:     newResource(recorded(inRecord), finalizer(metav1.FinalizerOrphanDependents), terminating),
			GivenObjects: objects{newConfigMap("former", inventoried, orphan, unmarked)}, Metadata: under(none), Now: now,
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"with --cascade=orphan, what was never owned is deleted": {
			Resource:     newResource(recorded(inRecord), finalizer(metav1.FinalizerOrphanDependents), terminating),
			GivenObjects: objects{newConfigMap("former", inventoried, orphan, neverOwned)}, Metadata: under(none), Now: now,
			ExpectDeletes: deletes("former"), ExpectEvents: events{eventFor("Deleted", "former")},
			ExpectedResult: reconcilers.Result{RequeueAfter: 10 * time.Second},
		},
		"the garbage collector deletes what a deleted resource owns": {
			Resource:     newResource(recorded(inRecord), finalizer("test-finalizer"), terminating),
			GivenObjects: beside(), Metadata: under(none), Now: now,
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute},
		},
		"a finalizer that no reconciler holds is removed": {
			Resource:     gone,
			GivenObjects: objects{newConfigMap("former", inventoried, orphan, neverOwned)}, Metadata: under(none), Now: now,
			ExpectDeletes: deletes("former"), ExpectEvents: events{eventFor("Deleted", "former")},
			ExpectedResult: reconcilers.Result{RequeueAfter: 10 * time.Second},
			AdditionalReconciles: []subReconcilerCase{
				{Resource: gone, Now: now.Add(10 * time.Second), ExpectedResult: reconcilers.Result{RequeueAfter: time.Minute}},
				{
					Resource: gone, Now: now.Add(70 * time.Second),
					ExpectResource: newResource(recorded(gone.Annotations[inventoryKey]), terminating, patchedOnce),
					ExpectPatches:  patches{finalizers()}, ExpectEvents: events{finalizerPatched},
				},
			},
		},
	}, func(_ string, tc *subReconcilerCase) { tc.APIGivenObjects = tc.GivenObjects }).Run(t, scheme, fromCase)
}

// failingList makes lists fail.
func failingList(err error) func(*fake.ClientBuilder) *fake.ClientBuilder {
	return func(builder *fake.ClientBuilder) *fake.ClientBuilder {
		return builder.WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
		})
	}
}

func patchedOnce(r *fixture.Resource) { r.ResourceVersion = "1000" }

// The cache may be outdated.
func TestPrune_ReadsAgainBeforeADeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		live *corev1.ConfigMap
		want []string
	}{
		"unchanged": {newConfigMap("former", inventoried), []string{
			"delete ConfigMap default/former", `event default/test Normal Deleted: Deleted ConfigMap "former"`,
		}},
		"gone":              {newConfigMap("another"), nil},
		"without the label": {newConfigMap("former"), nil},
		"another object":    {newConfigMap("former", inventoried, func(cm *corev1.ConfigMap) { cm.UID = "other" }), nil},
		"adopted":           {newConfigMap("former", inventoried, controlledBy("other")), nil},
		"being deleted":     {newConfigMap("former", inventoried, deleting), nil},
	} {
		t.Run(name, func(t *testing.T) {
			parent := newResource(recorded(`{"kinds":["ConfigMap"]}`), settled)
			w := newWorld(t, parent, newConfigMap("child", inventoried), newConfigMap("former", inventoried))
			mgr := newManager(t, w, nil)
			config := configFor(w, mgr)
			config.APIReader = newWorld(t, parent, tc.live).Server
			r := &resourceReconciler{Config: config, Reconciler: &prune{
				Inventory: inventoryKey, Reconciler: newChild(func(*fixture.Resource, string) {}),
			}}
			wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
			_, err := r.Reconcile(t.Context(), requestFor(parent))
			wantErr(t, nil, err)
			equal(t, "writes", tc.want, w.Writes())
		})
	}
}

func TestPrune_Validate(t *testing.T) {
	for name, tc := range map[string]struct {
		prune *prune
		want  string
	}{
		"nothing": {&prune{}, "Prune \"Prune\" must define Inventory\nPrune \"Prune\" must define Reconciler"},
		"no domain": {
			&prune{Inventory: "inventory", Reconciler: reconcilers.Sequence[*fixture.Resource]{}},
			`Prune "Prune" must define an Inventory with a domain, for example "example.com/inventory"`,
		},
		"twice": {
			&prune{Name: "Outer", Inventory: inventoryKey, Reconciler: &prune{
				Name: "Inner", Inventory: inventoryKey, Reconciler: reconcilers.Sequence[*fixture.Resource]{},
			}},
			`Prune "Outer" must define an Inventory of its own: another reconciler, Prune "Inner", uses ` +
				`"fixture.trueup.dev/inventory" too, and each would delete the objects of the other`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mgr := newManager(t, w, nil)
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: tc.prune}
			text := ""
			for line := range strings.Lines(tc.want) {
				text += `ResourceReconciler "ResourceResourceReconciler" must have a valid Reconciler: ` + line
			}
			wantText(t, text, r.SetupWithManager(t.Context(), mgr))
		})
	}
}
