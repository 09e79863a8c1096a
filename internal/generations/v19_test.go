// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

// The documented examples of v0.12 to v0.19: type parameters instead of type fields, sets of children and flow control.
// Examples that did not change are in the files of the older generations.

func TestV19_FunctionReconciler(t *testing.T) {
	function := newFunction()
	w := newWorld(t, function)
	reconcileRoot(t, &reconcilers.ResourceReconciler[*Function]{
		Name: "Function",
		Reconciler: reconcilers.Sequence[*Function]{
			parentTargetImageReconciler(),
			&reconcilers.ChildReconciler[*Function, *Image, *ImageList]{
				Name: "ChildImage",
				DesiredChild: func(_ context.Context, parent *Function) (*Image, error) {
					return &Image{
						ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name},
						Spec:       ImageSpec{Tag: parent.Status.TargetImage},
					}, nil
				},
				MergeBeforeUpdate: func(actual, desired *Image) { actual.Spec = desired.Spec },
				ReflectChildStatusOnParent: func(_ context.Context, parent *Function, child *Image, err error) {
					equal(t, "error", nil, err)
					parent.Status.KpackImageRef = child.Name
				},
			},
		},
		Config: w.Config,
	}, function)
	w.get(t, function)
	equal(t, "reference", "square", function.Status.KpackImageRef)
}

// A child with a finalizer has no owner reference, is tracked, and keeps its parent until it no longer exists.
func TestV19_ChildReconcilerFinalizer(t *testing.T) {
	child := &reconcilers.ChildReconciler[*Function, *Image, *ImageList]{
		Name:      "ChildImage",
		Finalizer: "functions.example.com/image",
		ListOptions: func(context.Context, *Function) []client.ListOption {
			return []client.ListOption{client.InNamespace("builds")}
		},
		OurChild: func(parent *Function, child *Image) bool { return child.Labels[functionLabel] == parent.Name },
		DesiredChild: func(_ context.Context, parent *Function) (*Image, error) {
			return &Image{ObjectMeta: metav1.ObjectMeta{
				Namespace: "builds", Name: parent.Name, Labels: map[string]string{functionLabel: parent.Name},
			}}, nil
		},
		MergeBeforeUpdate:          func(actual, desired *Image) { actual.Spec = desired.Spec },
		ReflectChildStatusOnParent: func(context.Context, *Function, *Image, error) {},
	}
	function := newFunction()
	w := newWorld(t, function)
	reconcileBelow(t, w, child, function)
	image := &Image{ObjectMeta: metav1.ObjectMeta{Namespace: "builds", Name: "square"}}
	w.get(t, image)
	equal(t, "owner references", 0, len(image.OwnerReferences))
	w.get(t, function)
	equal(t, "finalizers", []string{"functions.example.com/image"}, function.Finalizers)
	image.SetGroupVersionKind(group.WithKind("Image"))
	observers, err := w.Tracker.GetObservers(image)
	equal(t, "tracked", true, err == nil && len(observers) == 1)

	if err := w.Delete(t.Context(), function); err != nil {
		t.Fatal(err)
	}
	for range 2 { // first delete the image, then remove the finalizer
		reconcileBelow(t, w, child, function)
	}
	w.gone(t, image)
	w.gone(t, function)
}

func TestV19_ChildSetReconciler(t *testing.T) {
	var ids []string
	function := newFunction()
	w := newWorld(t, function)
	wanted := []string{"b", "a"}
	set := &reconcilers.ChildSetReconciler[*Function, *Image, *ImageList]{
		DesiredChildren: func(_ context.Context, parent *Function) ([]*Image, error) {
			children := []*Image{}
			for _, id := range wanted {
				children = append(children, &Image{ObjectMeta: metav1.ObjectMeta{
					Namespace: parent.Namespace, Name: parent.Name + "-" + id, Labels: map[string]string{"id": id},
				}})
			}
			return children, nil
		},
		IdentifyChild:     func(child *Image) string { return child.Labels["id"] },
		MergeBeforeUpdate: func(current, desired *Image) { current.Spec = desired.Spec },
		Sanitize:          func(child *Image) interface{} { return child.Spec },
		ReflectChildrenStatusOnParent: func(_ context.Context, _ *Function, result reconcilers.ChildSetResult[*Image]) {
			ids = nil
			for _, child := range result.Children {
				if child.Child != nil {
					ids = append(ids, child.Id)
				}
			}
			equal(t, "error", nil, result.AggregateError())
		},
	}
	reconcileBelow(t, w, set, function)
	equal(t, "in the order of ids", []string{"a", "b"}, ids)
	wanted = []string{"b"}
	reconcileBelow(t, w, set, function)
	equal(t, "after the removal of a child", []string{"b"}, ids)
}

// With an interface as the other type, the resource itself is passed to a reconciler for all kinds.
func TestV19_CastResourceToObject(t *testing.T) {
	function := newFunction()
	var seen client.Object
	reconcileBelow(t, newWorld(t, function), &reconcilers.CastResource[*Function, client.Object]{
		Reconciler: &reconcilers.SyncReconciler[client.Object]{
			Sync: func(_ context.Context, resource client.Object) error {
				seen = resource
				return nil
			},
		},
	}, function)
	_, same := seen.(*Function)
	equal(t, "the resource itself", true, same)
}

func TestV19_IfThen(t *testing.T) {
	var ran []string
	say := func(what string) reconcilers.SubReconciler[*Function] {
		return &reconcilers.SyncReconciler[*Function]{Sync: func(context.Context, *Function) error {
			ran = append(ran, what)
			return nil
		}}
	}
	gated := &reconcilers.IfThen[*Function]{
		If: func(_ context.Context, resource *Function) bool {
			return resource.Labels["capability-gate.example/enabled"] == "true"
		},
		Then: reconcilers.Sequence[*Function]{say("gated feature")},
	}
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), gated, function)
	function.Labels["capability-gate.example/enabled"] = "true"
	reconcileBelow(t, newWorld(t, function), gated, function)
	gated.Else = say("else")
	delete(function.Labels, "capability-gate.example/enabled")
	reconcileBelow(t, newWorld(t, function), gated, function)
	equal(t, "ran", []string{"gated feature", "else"}, ran)
}

// The documentation nests a SyncReconciler by value, which does not implement SubReconciler; this test uses its
// address.
func TestV19_While(t *testing.T) {
	calls := 0
	tenTimes := &reconcilers.While[*Function]{
		Condition: func(ctx context.Context, _ *Function) bool {
			return reconcilers.RetrieveIteration(ctx) < 10
		},
		Reconciler: &reconcilers.SyncReconciler[*Function]{
			Sync: func(context.Context, *Function) error {
				calls++
				return nil
			},
		},
	}
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), tenTimes, function)
	equal(t, "calls", 10, calls)

	endless := &reconcilers.While[*Function]{
		Condition:  func(context.Context, *Function) bool { return true },
		Reconciler: tenTimes.Reconciler,
	}
	_, err := endless.Reconcile(t.Context(), function)
	var tooMany *reconcilers.ErrMaxIterations
	if !errors.As(err, &tooMany) {
		t.Fatalf("error %v, want ErrMaxIterations", err)
	}
	equal(t, "default limit", 100, tooMany.Iterations)
}

func TestV19_TryCatch(t *testing.T) {
	var ran []string
	ignoreErrors := &reconcilers.TryCatch[*Function]{
		Try: &reconcilers.SyncReconciler[*Function]{
			Sync: func(context.Context, *Function) error {
				return errors.New("always error")
			},
		},
		Catch: func(_ context.Context, _ *Function, result reconcile.Result, err error) (reconcile.Result, error) {
			ran = append(ran, "caught "+err.Error())
			return result, nil
		},
		Finally: &reconcilers.SyncReconciler[*Function]{
			Sync: func(context.Context, *Function) error {
				ran = append(ran, "cleaned up")
				return nil
			},
		},
	}
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), ignoreErrors, function)
	equal(t, "ran", []string{"caught always error", "cleaned up"}, ran)
}

func TestV19_OverrideSetup(t *testing.T) {
	var ran []string
	custom := &reconcilers.OverrideSetup[*Function]{
		Reconciler: &reconcilers.SyncReconciler[*Function]{
			Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
				return errors.New("called the overridden set-up")
			},
			Sync: func(context.Context, *Function) error {
				ran = append(ran, "sync")
				return nil
			},
		},
		Setup: func(context.Context, reconcilers.Manager, *reconcilers.Builder) error {
			ran = append(ran, "setup")
			return nil
		},
	}
	if err := custom.SetupWithManager(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), custom, function)
	equal(t, "ran", []string{"setup", "sync"}, ran)
}

func TestV19_TrackAndList(t *testing.T) {
	gateway := newGateway()
	w := newWorld(t, gateway)
	reconcileBelow(t, w, &reconcilers.SyncReconciler[*Gateway]{
		Sync: func(ctx context.Context, resource *Gateway) error {
			c := reconcilers.RetrieveConfigOrDie(ctx)
			return c.TrackAndList(
				ctx, &corev1.SecretList{}, client.InNamespace(resource.Namespace), client.MatchingLabels{"uses": "gateway"},
			)
		},
	}, gateway)
	later := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      "certificate",
			Labels:    map[string]string{"uses": "gateway"},
		},
	}
	observers, err := w.Tracker.GetObservers(later)
	equal(t, "error", nil, err)
	equal(t, "observers", []types.NamespacedName{client.ObjectKeyFromObject(gateway)}, observers)
}

// Halting is not an error, and the changed status is written.
func TestV19_HaltSubReconcilers(t *testing.T) {
	gateway := newGateway()
	w := newWorld(t, gateway)
	reconcileBelow(t, w, reconcilers.Sequence[*Gateway]{
		&reconcilers.SyncReconciler[*Gateway]{Sync: func(_ context.Context, resource *Gateway) error {
			resource.Status.GatewayImage = "none yet"
			return reconcilers.HaltSubReconcilers
		}},
		&reconcilers.SyncReconciler[*Gateway]{Sync: func(context.Context, *Gateway) error {
			t.Error("called after a halt")
			return nil
		}},
	}, gateway)
	w.get(t, gateway)
	equal(t, "status", "none yet", gateway.Status.GatewayImage)
	equal(t, "observed generation", int64(1), gateway.Status.ObservedGeneration)
}

func TestV19_Time(t *testing.T) {
	started := time.Date(2024, 3, 1, 12, 0, 0, 0, time.UTC)
	gateway := newGateway()
	w := newWorld(t, gateway)
	root := &reconcilers.ResourceReconciler[*Gateway]{
		Reconciler: &reconcilers.SyncReconciler[*Gateway]{Sync: func(ctx context.Context, resource *Gateway) error {
			resource.Status.StartedAt = &metav1.Time{Time: rtime.RetrieveTime(ctx)}
			return nil
		}},
		Config: w.Config,
	}
	if _, err := root.Reconcile(
		rtime.StashNow(t.Context(), started), reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(gateway)},
	); err != nil {
		t.Fatal(err)
	}
	w.get(t, gateway)
	equal(t, "time", true, gateway.Status.StartedAt.Time.Equal(started))
}

// The three types of objects that reconcilers use.
func TestV19_TypesOfObjects(t *testing.T) {
	gvk := group.WithKind("Function")
	function := newFunction()
	w := newWorld(t, function)

	anything := &unstructured.Unstructured{}
	anything.SetGroupVersionKind(gvk)
	reconcileRoot(t, &reconcilers.ResourceReconciler[*unstructured.Unstructured]{
		Type: anything,
		Reconciler: &reconcilers.SyncReconciler[*unstructured.Unstructured]{
			Sync: func(_ context.Context, resource *unstructured.Unstructured) error {
				return unstructured.SetNestedField(resource.Object, "unstructured:1", "status", "latestImage")
			},
		},
		Config: w.Config,
	}, function)
	w.get(t, function)
	equal(t, "status", "unstructured:1", function.Status.LatestImage)

	var seen string
	reconcileRoot(t, &reconcilers.ResourceReconciler[*ImageRef]{
		Type: &ImageRef{TypeMeta: metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}},
		Reconciler: &reconcilers.SyncReconciler[*ImageRef]{
			Sync: func(ctx context.Context, resource *ImageRef) error {
				seen = resource.Spec.Image
				before := copied(resource)
				resource.Spec.Image = "duck:1"
				return reconcilers.RetrieveConfigOrDie(ctx).Patch(ctx, resource, client.MergeFrom(before))
			},
		},
		Config: w.Config,
	}, function)
	equal(t, "seen", "registry.example.com/square", seen)
	w.get(t, function)
	equal(t, "image", "duck:1", function.Spec.Image)
	equal(t, "fields that the duck does not have are unchanged", "https://git.example.com/square", *function.Spec.Source)
}
