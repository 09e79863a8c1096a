// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/await"
	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

var (
	resourceKind  = fixture.GroupVersion.WithKind("Resource")
	duckOtherKind = fixture.GroupVersion.WithKind("ResourceNoStatus")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	deployKind    = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// untyped returns obj as an unstructured object of the kind.
func untyped(obj client.Object, kind schema.GroupVersionKind) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u
}

// finalizerCall is a function that changes the finalizers of an object.
type finalizerCall struct {
	change func(ctx context.Context, obj client.Object) error
	// event is the finalizer in the event. left are the finalizers after the patch.
	event string
	left  []string
}

var finalizerCalls = map[string]finalizerCall{
	"ClearFinalizer": {func(ctx context.Context, obj client.Object) error {
		return reconcilers.ClearFinalizer(ctx, obj, "f")
	}, "f", nil},
	"AddFinalizer": {func(ctx context.Context, obj client.Object) error {
		return reconcilers.AddFinalizer(ctx, obj, "g")
	}, "g", []string{"f", "g"}},
	"ReplaceFinalizer": {func(ctx context.Context, obj client.Object) error {
		return reconcilers.ReplaceFinalizer(ctx, obj, "f", "g")
	}, "g", []string{"g"}},
}

// patchOf returns the expected patch of a call.
func (c finalizerCall) patchOf(kind schema.GroupVersionKind, name string, none []string) rtesting.PatchRef {
	left := c.left
	if left == nil {
		left = none
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": "999"}})
	return rtesting.PatchRef{
		Group: kind.Group, Kind: kind.Kind, Namespace: "default", Name: name, PatchType: types.MergePatchType, Patch: patch,
	}
}

func (c finalizerCall) eventOn(kind schema.GroupVersionKind, name string) rtesting.Event {
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	about.SetGroupVersionKind(kind)
	return rtesting.NewEvent(about, scheme, corev1.EventTypeNormal, "FinalizerPatched", "Patched finalizer %q", c.event)
}

// calling returns a subreconciler that changes the finalizers of an object. The function of obtains the object from
// the resource or from a client.
func calling[T client.Object](
	call finalizerCall, object func(ctx context.Context, resource T) client.Object,
) reconcilers.SubReconciler[T] {
	return &reconcilers.SyncReconciler[T]{Sync: func(ctx context.Context, resource T) error {
		obj := object(ctx, resource)
		if err := call.change(ctx, obj); err != nil {
			return err
		}
		if fmt.Sprint(obj.GetFinalizers()) != fmt.Sprint(call.left) || obj.GetResourceVersion() != "1000" {
			return fmt.Errorf("finalizers %q, resource version %q", obj.GetFinalizers(), obj.GetResourceVersion())
		}
		return nil
	}}
}

// got returns a function that reads an object with the current config.
func got[T client.Object](obj client.Object) func(context.Context, T) client.Object {
	return func(ctx context.Context, _ T) client.Object {
		found := obj.DeepCopyObject().(client.Object)
		if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
			panic(err)
		}
		return found
	}
}

// asCast casts the resource for a subreconciler.
func asCast[CT client.Object](r reconcilers.SubReconciler[CT]) subReconciler {
	return &reconcilers.CastResource[*fixture.Resource, CT]{Reconciler: r}
}

func TestFinalizers_BelongToTheGivenObject(t *testing.T) {
	named := func(obj client.Object, name string, uid types.UID) client.Object {
		obj.SetNamespace("default")
		obj.SetName(name)
		obj.SetUID(uid)
		obj.SetResourceVersion("999")
		obj.SetFinalizers([]string{"f"})
		return obj
	}
	resource := func() *fixture.Resource { return newResource(settled, finalizer("f")) }
	configMap, deployment := named(&corev1.ConfigMap{}, "test", "other"), named(&appsv1.Deployment{}, "test", "other")
	noStatus, second := named(&fixture.ResourceNoStatus{}, "test", "other"), named(newResource(settled), "second", "other")
	mirror := named(newResource(settled), "test", "mirror")
	otherDuck := &fixture.Duck{}
	otherDuck.SetGroupVersionKind(duckOtherKind)
	otherDuck.SetNamespace("default")
	otherDuck.SetName("test")
	bareConfigMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test"}}
	none, empty := []string(nil), []string{}

	for name, tc := range map[string]struct {
		of func(call finalizerCall) subReconciler
		// kind and name identify the object that is written. none is its encoding of no finalizers.
		kind  schema.GroupVersionKind
		name  string
		none  []string
		given client.Object
		// there reports whether the object is written in the other cluster.
		there bool
	}{
		"the resource": {of: func(call finalizerCall) subReconciler {
			return calling(call, func(_ context.Context, r *fixture.Resource) client.Object { return r })
		}, kind: resourceKind, name: "test", none: none},
		"the resource, read again": {of: func(call finalizerCall) subReconciler {
			return calling(call, got[*fixture.Resource](resource()))
		}, kind: resourceKind, name: "test", none: none},
		"the resource, unstructured": {of: func(call finalizerCall) subReconciler {
			return calling(call, func(_ context.Context, r *fixture.Resource) client.Object { return untyped(r, resourceKind) })
		}, kind: resourceKind, name: "test", none: none},
		"the resource, of another version": {of: func(call finalizerCall) subReconciler {
			return calling(call, func(_ context.Context, r *fixture.Resource) client.Object {
				return untyped(r, schema.GroupVersionKind{Group: resourceKind.Group, Version: "v2", Kind: "Resource"})
			})
		}, kind: resourceKind, name: "test", none: none},
		"the resource as a duck": {of: func(call finalizerCall) subReconciler {
			return asCast(calling(call, func(_ context.Context, duck *fixture.Duck) client.Object { return duck }))
		}, kind: resourceKind, name: "test", none: none},
		"the resource as a duck without a kind": {of: func(call finalizerCall) subReconciler {
			return asCast(calling(call, func(_ context.Context, duck *fixture.Duck) client.Object {
				duck = duck.DeepCopy()
				duck.TypeMeta = metav1.TypeMeta{}
				return duck
			}))
		}, kind: resourceKind, name: "test", none: none},
		"the resource as a type of another kind": {of: func(call finalizerCall) subReconciler {
			return asCast(calling(call, func(_ context.Context, seenAs *appsv1.Deployment) client.Object { return seenAs }))
		}, kind: resourceKind, name: "test", none: none, given: deployment},
		"the resource, below another config": {of: func(call finalizerCall) subReconciler {
			return thereFor(calling(call, func(_ context.Context, r *fixture.Resource) client.Object { return r }))
		}, kind: resourceKind, name: "test", none: none},

		"another kind, unstructured": {of: func(call finalizerCall) subReconciler {
			return calling(call, got[*fixture.Resource](untyped(configMap, configMapKind)))
		}, kind: configMapKind, name: "test", none: empty, given: configMap},
		"another kind": {of: func(call finalizerCall) subReconciler {
			return calling(call, got[*fixture.Resource](bareConfigMap))
		}, kind: configMapKind, name: "test", none: none, given: configMap},
		"another kind of the group": {of: func(call finalizerCall) subReconciler {
			return calling(call, got[*fixture.Resource](noStatus))
		}, kind: duckOtherKind, name: "test", none: none, given: noStatus},
		"another kind as a duck, below a cast to that duck": {of: func(call finalizerCall) subReconciler {
			return asCast(calling(call, got[*fixture.Duck](otherDuck)))
		}, kind: duckOtherKind, name: "test", none: none, given: noStatus},
		"another kind, below a cast to its type": {of: func(call finalizerCall) subReconciler {
			return asCast(calling(call, func(context.Context, *appsv1.Deployment) client.Object {
				return deployment.DeepCopyObject().(client.Object)
			}))
		}, kind: deployKind, name: "test", none: none, given: deployment},
		"another name": {of: func(call finalizerCall) subReconciler {
			return calling(call, got[*fixture.Resource](second))
		}, kind: resourceKind, name: "second", none: none, given: second},
		"another name, unstructured": {of: func(call finalizerCall) subReconciler {
			return calling(call, got[*fixture.Resource](untyped(second, resourceKind)))
		}, kind: resourceKind, name: "second", none: empty, given: second},
		"another kind, below another config": {of: func(call finalizerCall) subReconciler {
			return thereFor(calling(call, got[*fixture.Resource](untyped(configMap, configMapKind))))
		}, kind: configMapKind, name: "test", none: empty, given: configMap, there: true},
		"the same kind and name in another cluster": {of: func(call finalizerCall) subReconciler {
			return thereFor(calling(call, got[*fixture.Resource](mirror)))
		}, kind: resourceKind, name: "test", none: none, given: mirror, there: true},
	} {
		for callName, call := range finalizerCalls {
			patches, events := patches{call.patchOf(tc.kind, tc.name, tc.none)}, events{call.eventOn(tc.kind, tc.name)}
			here := rtesting.ReconcilerTestCase{
				Metadata: reconciling(tc.of(call)), Request: testRequest,
				GivenObjects: objects{resource()}, StatusSubResourceTypes: hasStatus,
			}
			there := rtesting.ExpectConfig{}
			switch {
			case tc.there:
				there.GivenObjects, there.ExpectPatches, there.ExpectEvents = objects{tc.given}, patches, events
			case tc.given != nil:
				here.GivenObjects = append(here.GivenObjects, tc.given)
				fallthrough
			default:
				here.ExpectPatches, here.ExpectEvents = patches, events
			}
			here.AdditionalConfigs = map[string]rtesting.ExpectConfig{"there": there}
			t.Run(callName+"/"+name, func(t *testing.T) { here.Run(t, scheme, rootFactory) })
		}
	}
}

// thereFor runs a subreconciler with the config of another cluster.
func thereFor(r subReconciler) subReconciler {
	return &withConfig{Reconciler: r, Config: func(ctx context.Context, _ reconcilers.Config) (reconcilers.Config, error) {
		return reconcilers.RetrieveAdditionalConfigs(ctx)["there"], nil
	}}
}

// rootFactory is like resourceFactory, for subreconcilers that read the resource again.
func rootFactory(_ *testing.T, tc *rtesting.ReconcilerTestCase, c reconcilers.Config) root {
	return changed(&resourceReconciler{Config: c}, tc.Metadata)
}

// In a table test of a subreconciler, objects often have no UID.
func TestFinalizers_BelongToTheGivenObject_WithoutUIDs(t *testing.T) {
	bare := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers}
	}
	clearing := finalizerCalls["ClearFinalizer"]
	for name, tc := range map[string]struct {
		reconciler subReconciler
		kind       schema.GroupVersionKind
		none, left []string
	}{
		"the resource as a duck": {
			asCast(calling(clearing, func(_ context.Context, duck *fixture.Duck) client.Object { return duck })),
			resourceKind, nil, nil,
		},
		"another kind": {
			calling(clearing, got[*fixture.Resource](untyped(&corev1.ConfigMap{ObjectMeta: bare("test")}, configMapKind))),
			configMapKind,
			[]string{},
			[]string{"f"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := &fixture.Resource{ObjectMeta: bare("test", tc.left...)}
			if tc.left == nil {
				want.ResourceVersion = "1000"
			}
			tc := subReconcilerCase{
				Metadata: map[string]any{"reconciler": tc.reconciler},
				Resource: &fixture.Resource{ObjectMeta: bare("test", "f")}, ExpectResource: want,
				GivenObjects:  objects{&corev1.ConfigMap{ObjectMeta: bare("test", "f")}},
				ExpectPatches: patches{clearing.patchOf(tc.kind, "test", tc.none)},
				ExpectEvents:  events{clearing.eventOn(tc.kind, "test")},
			}
			tc.Run(t, scheme, fromCase)
		})
	}
}

// A failure is also reported for the given object.
func TestFinalizers_FailuresBelongToTheGivenObject(t *testing.T) {
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", ResourceVersion: "999"}}
	tc := outcome(&syncReconciler{Sync: func(ctx context.Context, _ *fixture.Resource) error {
		return reconcilers.AddFinalizer(ctx, other.DeepCopy(), "f")
	}}, reconcilers.Result{}, errTest)
	tc.WithReactors = failing("patch", "ConfigMap", errTest)
	tc.ExpectPatches = patches{finalizerCall{left: []string{"f"}}.patchOf(configMapKind, "test", nil)}
	tc.ExpectEvents = events{rtesting.NewEvent(other, scheme, corev1.EventTypeWarning, "FinalizerPatchFailed",
		"Failed to patch finalizer %q: failure of the test", "f")}
	tc.Run(t, scheme, fromCase)
}

// A context that was not created by a root reconciler may contain less information about the resource.
func TestFinalizers_IncompleteContexts(t *testing.T) {
	other := newConfigMap("test", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"f"} })
	w := newWorld(t, newResource(finalizer("f")), other)
	ctx := reconcilers.StashOriginalConfig(context.Background(), w.Config)
	request := reconcilers.StashRequest(ctx, testRequest)
	for name, tc := range map[string]struct {
		ctx  context.Context
		obj  client.Object
		want string
	}{
		"no type, the resource": {ctx, newResource(finalizer("f")), "patch Resource default/test"},
		"no type, another":      {ctx, other.DeepCopy(), "patch ConfigMap default/test"},
		"no current config": {
			reconcilers.StashOriginalResourceType(request, &fixture.Resource{}),
			other.DeepCopy(), "patch ConfigMap default/test",
		},
		"no request": {
			reconcilers.StashOriginalResourceType(ctx, &fixture.Resource{}),
			untyped(newResource(finalizer("f")), resourceKind), "patch Resource default/test",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.Fail("patch", errTest)
			wantErr(t, errTest, reconcilers.ClearFinalizer(tc.ctx, tc.obj, "f"))
			equal(t, "patches", 1, w.Count(tc.want))
			w.Trace()
			w.Heal()
		})
	}
}

// The resource owns a child, not an object of the kind that the resource was cast to.
func TestChildReconciler_BelowACastToAnotherKind(t *testing.T) {
	type childReconciler = reconcilers.ChildReconciler[*appsv1.Deployment, *corev1.ConfigMap, *corev1.ConfigMapList]
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", UID: "other"}}
	r := asCast[*appsv1.Deployment](&childReconciler{
		DesiredChild: func(_ context.Context, parent *appsv1.Deployment) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: "child"}}, nil
		},
		ChildObjectManager:         &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{MergeBeforeUpdate: mergeData},
		ReflectChildStatusOnParent: func(context.Context, *appsv1.Deployment, *corev1.ConfigMap, error) {},
	})
	child := newConfigMap("child")
	child.UID, child.ResourceVersion, child.CreationTimestamp, child.Data = "", "", metav1.Time{}, nil
	rtesting.ReconcilerTests{
		"created": {
			Metadata: reconciling(r), Request: testRequest,
			GivenObjects: objects{newResource(settled), deployment}, StatusSubResourceTypes: hasStatus,
			ExpectCreates: objects{child}, ExpectEvents: events{createdChild},
		},
	}.Run(t, scheme, rootFactory)
}

// The client decodes the response of an update into the object that it sent. The object that was read must not change.
func TestUpdatingObjectManager_DoesNotChangeManagedFields(t *testing.T) {
	managed := func(manager string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`"` + manager + `"`),
		}}
	}
	w := newWorld(t, newResource(), newConfigMap("child"))
	w.Admit = func(obj client.Object) {
		// Decoding reuses the memory of a slice and of what its items point to.
		if fields := obj.GetManagedFields(); len(fields) > 0 {
			if err := json.Unmarshal([]byte(`[{"manager":"after","fieldsV1":"after"}]`), &fields); err != nil {
				t.Error(err)
			}
		}
		obj.SetManagedFields(nil)
	}
	manager := &reconcilers.UpdatingObjectManager[*corev1.ConfigMap]{
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
	}
	actual := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.ManagedFields = managed("before") })
	desired := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"changed": "yes"} })
	_, err := manager.Manage(w.Context(), newResource(), actual, desired)
	wantErr(t, nil, err)
	equal(t, "managed fields of the object that was read", managed("before"), actual.ManagedFields)
	equal(t, "updates", 1, w.Count("update ConfigMap"))
}

// Each of several concurrent requests must compare the status with the status of its own resource.
func TestResourceReconciler_ComparesItsOwnStatus(t *testing.T) {
	ready := newResource(func(r *fixture.Resource) { r.Status.Fields = map[string]string{"is": "ready"} })
	w := newWorld(t, ready)
	r := &resourceReconciler{Config: w.Config, Reconciler: &syncReconciler{Sync: func(
		_ context.Context, r *fixture.Resource,
	) error {
		r.Status.Fields["is"] = "changed"
		r.Status.Fields["is"] = "ready"
		return nil
	}}}
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	w.Trace()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if _, err := r.Reconcile(context.Background(), testRequest); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	equal(t, "status writes", 0, w.Count("update Resource/status"))
}

const (
	byNamespace = "list ConfigMap in default"
	byOwner     = "list ConfigMap in default fields trueup.dev/controller-uid=parent"
)

// lists reconciles and returns the lists that the client received.
func lists(t *testing.T, w *world, r *resourceReconciler) []string {
	t.Helper()
	w.Trace()
	_, err := r.Reconcile(context.Background(), testRequest)
	wantErr(t, nil, err)
	found := []string{}
	for _, line := range w.Trace() {
		if len(line) > 5 && line[:5] == "list " {
			found = append(found, line)
		}
	}
	return found
}

func TestOwnerIndex_FindsChildren(t *testing.T) {
	for name, newSub := range map[string]func(w *world) reconcilers.SubReconciler[*fixture.Resource]{
		"child":     func(w *world) reconcilers.SubReconciler[*fixture.Resource] { return newChildReconciler(w) },
		"child set": func(w *world) reconcilers.SubReconciler[*fixture.Resource] { return newChildSetReconciler(w) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(
				t, newResource(settled),
				newConfigMap("of-another", func(cm *corev1.ConfigMap) { cm.OwnerReferences[0].UID = "another" }),
			)
			events := newEventCache(w.Scheme)
			mgr := newManager(t, w, events)
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newSub(w)}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			equal(t, "indexes", []string{"*v1.ConfigMap by trueup.dev/controller-uid"}, events.indexed)
			equal(t, "lists, to create", []string{byOwner}, lists(t, w, r))
			equal(t, "lists, in sync", []string{byOwner}, lists(t, w, r))
		})
	}
}

func TestOwnerIndex_IsRegisteredOncePerKind(t *testing.T) {
	w := newWorld(t)
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		newChildReconciler(w, identifiedByName), newChildReconciler(w, identifiedByName),
		newChildSetReconciler(w, identifiedByLabel), newSecretReconciler(), newDeploymentReconciler(new("one")),
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "indexes: none for children without owner references", []string{
		"*v1.ConfigMap by trueup.dev/controller-uid", "*v1.Deployment by trueup.dev/controller-uid",
	}, events.indexed)
}

func TestOwnerIndex_IsSharedByControllersOfOneManager(t *testing.T) {
	// Use the cache of production: it rejects duplicate indexes.
	w := newWorld(t)
	mgr := newManager(t, w, nil)
	config := configFor(w, mgr)
	for name, c := range map[string]reconcilers.Config{
		"a config": config, "the same config": config, "a config of its own": configFor(w, mgr),
	} {
		r := &resourceReconciler{Config: c, Reconciler: newChildReconciler(w, identifiedByName)}
		if err := r.SetupWithManager(context.Background(), mgr); err != nil {
			t.Errorf("second controller for the same kind of children with %s: %v", name, err)
		}
	}
}

func TestOwnerIndex_Failures(t *testing.T) {
	t.Run("kind is not served", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, nil, "ConfigMap")
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		equal(t, "lists", []string{byNamespace}, lists(t, w, r))
	})
	t.Run("kind is served later", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		events := newEventCache(w.Scheme)
		events.indexErr = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
		mgr := newManager(t, w, events)
		log, lines := newLog(0)
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(withLog(context.Background(), log), mgr))
		equal(t, "lists before", []string{byNamespace}, lists(t, w, r))
		start(t, mgr)
		const waiting = "unable to index children by owner yet, trying again"
		await.Nil(t, time.Minute, func() error {
			if !strings.Contains(lines.all(), waiting) {
				return errors.New("no message about the index")
			}
			return nil
		})
		events.mu.Lock()
		events.indexErr = nil
		events.mu.Unlock()
		await.Nil(t, time.Minute, func() error {
			if got := lists(t, w, r); !slices.Equal(got, []string{byOwner}) {
				return fmt.Errorf("lists: %v", got)
			}
			return nil
		})
		equal(t, "messages", 1, strings.Count(lines.all(), waiting))
	})
	t.Run("index cannot be created", func(t *testing.T) {
		w := newWorld(t)
		events := newEventCache(w.Scheme)
		events.indexErr = errTest
		mgr := newManager(t, w, events)
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		err := r.SetupWithManager(context.Background(), mgr)
		wantErr(t, errTest, err)
		wantText(t, "index ConfigMap by owner: failure of the test", err)
	})
	t.Run("client does not know the index", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		w.Fail(byOwner, errTest)
		equal(t, "lists at first", []string{byOwner, byNamespace}, lists(t, w, r))
		equal(t, "lists later", []string{byNamespace}, lists(t, w, r))
	})
	t.Run("client fails", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		mgr := newManager(t, w, newEventCache(w.Scheme))
		r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: newChildReconciler(w)}
		wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
		w.Fail(byNamespace, errTest)
		_, err := r.Reconcile(context.Background(), testRequest)
		wantErr(t, errTest, err)
		w.Heal()
		equal(t, "lists after the client recovers: the index is still used", []string{byOwner}, lists(t, w, r))
	})
	t.Run("without a manager", func(t *testing.T) {
		w := newWorld(t, newResource(settled))
		r := &resourceReconciler{Config: w.Config, Reconciler: newChildReconciler(w)}
		equal(t, "lists", []string{byNamespace}, lists(t, w, r))
	})
}

func TestOwnerIndex_OwnListOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		options []client.ListOption
		want    string
	}{
		"labels and namespace": {
			[]client.ListOption{client.InNamespace("other"), client.MatchingLabels{"app": "test"}},
			"list ConfigMap in other labels app=test fields trueup.dev/controller-uid=parent",
		},
		"no namespace": {nil, "list ConfigMap fields trueup.dev/controller-uid=parent"},
		"a field selector": {
			[]client.ListOption{
				client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("trueup.dev/controller-uid", "mine")},
			},
			"list ConfigMap fields trueup.dev/controller-uid=mine",
		},
		"an empty field selector": {
			[]client.ListOption{client.MatchingFieldsSelector{Selector: fields.Everything()}},
			"list ConfigMap fields trueup.dev/controller-uid=parent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newResource(settled))
			mgr := newManager(t, w, newEventCache(w.Scheme))
			child := newChildReconciler(w, func(r *childReconciler) {
				r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption { return tc.options }
			})
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: child}
			wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
			equal(t, "lists", []string{tc.want}, lists(t, w, r))
		})
	}
}

func TestOwnerIndex_IsSeparateForTypedAndUnstructuredObjects(t *testing.T) {
	w := newWorld(t, newResource(settled), newConfigMap("child"))
	events := newEventCache(w.Scheme)
	mgr := newManager(t, w, events)
	child, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	child.SetAPIVersion("v1")
	child.SetKind("ConfigMap")
	list.SetAPIVersion("v1")
	list.SetKind("ConfigMapList")
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: sequence{
		newChildReconciler(w, identifiedByName),
		&reconcilers.ChildReconciler[*fixture.Resource, *unstructured.Unstructured, *unstructured.UnstructuredList]{
			ChildType: child, ChildListType: list,
			OurChild: func(_ *fixture.Resource, child *unstructured.Unstructured) bool { return child.GetName() == "other" },
			DesiredChild: func(context.Context, *fixture.Resource) (*unstructured.Unstructured, error) {
				return nil, nil
			},
			ReflectChildStatusOnParent: func(context.Context, *fixture.Resource, *unstructured.Unstructured, error) {},
			MergeBeforeUpdate:          func(_, _ *unstructured.Unstructured) {},
		},
	}}
	wantErr(t, nil, r.SetupWithManager(context.Background(), mgr))
	equal(t, "indexes: caches of typed and of unstructured objects are separate", []string{
		"*v1.ConfigMap by trueup.dev/controller-uid", "*unstructured.Unstructured by trueup.dev/controller-uid",
	}, events.indexed)

	// By default, a client does not read unstructured objects from the cache, and the API server does not support the
	// field.
	w.FailNth("list ConfigMap", 2, errTest)
	equal(t, "lists at first", []string{byOwner, byOwner, byNamespace}, lists(t, w, r))
	w.Heal()
	equal(t, "lists later: the typed objects still have their index", []string{byOwner, byNamespace}, lists(t, w, r))
}

func TestNewConfig(t *testing.T) {
	w := newWorld(t, newConfigMap("theme"))
	mgr := newManager(t, w, newEventCache(w.Scheme))
	config := reconcilers.NewConfig(mgr, &fixture.Resource{}, time.Hour)
	if config.Client == nil || config.APIReader == nil || config.Discovery == nil || config.Recorder == nil ||
		config.EventRecorder == nil || config.Tracker == nil {
		t.Errorf("the config is incomplete: %+v", config)
	}
	same := config
	if same != config {
		t.Error("copies of a config differ")
	}
	wantErr(
		t, nil, config.Get(context.Background(), client.ObjectKeyFromObject(newConfigMap("theme")), &corev1.ConfigMap{}),
	)
	duck := fixture.NewDuck("default", "missing")
	if err := config.Get(context.Background(), client.ObjectKeyFromObject(duck), duck); client.IgnoreNotFound(err) != nil {
		t.Errorf("the client does not know ducks: %v", err)
	}

	other := config.WithCluster(mgr)
	if other.Tracker != config.Tracker {
		t.Error("the config of another cluster has a different tracker")
	}

	synctest.Test(t, func(t *testing.T) {
		config := config.WithTracker()
		observers := func() int {
			observers, err := config.Tracker.GetObservers(newConfigMap("theme"))
			wantErr(t, nil, err)
			return len(observers)
		}
		wantErr(t, nil, config.Tracker.TrackObject(newConfigMap("theme"), newResource()))
		time.Sleep(2*time.Hour - time.Second)
		equal(t, "observers before two sync periods are over", 1, observers())
		time.Sleep(2 * time.Second)
		equal(t, "observers once two sync periods are over", 0, observers())
	})
}
