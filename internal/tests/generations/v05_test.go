// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"trueup.dev/reconcilers"
)

// The documented examples of v0.1 to v0.5: the resource is called the parent.

const functionLabel = "generations.trueup.dev/function"

func parentFunctionReconciler(c reconcilers.Config) *reconcilers.ParentReconciler[*Function] {
	return &reconcilers.ParentReconciler[*Function]{
		Name: "Function",
		Type: &Function{},
		Reconciler: reconcilers.Sequence[*Function]{
			parentTargetImageReconciler(),
			parentChildImageReconciler(),
		},

		Config: c,
	}
}

func parentTargetImageReconciler() reconcilers.SubReconciler[*Function] {
	return &reconcilers.SyncReconciler[*Function]{
		Name: "TargetImage",
		Sync: func(_ context.Context, parent *Function) error {
			parent.Status.MarkImageResolved()
			parent.Status.TargetImage = parent.Spec.Image + ":latest"
			return nil
		},
	}
}

// The function SemanticEquals is omitted: it has not been called since v0.8, because objects are compared after the
// merge.
func parentChildImageReconciler() reconcilers.SubReconciler[*Function] {
	return &reconcilers.ChildReconciler[*Function, *Image, *ImageList]{
		Name:          "ChildImage",
		ChildType:     &Image{},
		ChildListType: &ImageList{},

		DesiredChild: func(_ context.Context, parent *Function) (*Image, error) {
			if parent.Spec.Source == nil {
				return nil, nil
			}
			return &Image{
				ObjectMeta: metav1.ObjectMeta{
					Labels:       reconcilers.MergeMaps(parent.Labels, map[string]string{functionLabel: parent.Name}),
					Annotations:  make(map[string]string),
					GenerateName: fmt.Sprintf("%s-function-", parent.Name),
					Namespace:    parent.Namespace,
				},
				Spec: ImageSpec{Tag: parent.Status.TargetImage},
			}, nil
		},
		MergeBeforeUpdate: func(actual, desired *Image) {
			actual.Labels = desired.Labels
			actual.Spec = desired.Spec
		},
		ReflectChildStatusOnParent: func(_ context.Context, parent *Function, child *Image, _ error) {
			if child == nil {
				parent.Status.LatestImage = parent.Status.TargetImage
				parent.Status.MarkBuildNotUsed()
				return
			}
			parent.Status.KpackImageRef = child.Name
			parent.Status.LatestImage = child.Status.LatestImage
			parent.Status.PropagateImageStatus(child.Status.LatestImage)
		},
		Sanitize: func(child *Image) interface{} {
			return child.Spec
		},
	}
}

func TestV05_ParentReconciler(t *testing.T) {
	function := newFunction()
	w := newWorld(t, function)
	reconcileRoot(t, parentFunctionReconciler(w.Config), function)

	images := &ImageList{}
	if err := w.List(t.Context(), images, client.MatchingLabels{functionLabel: "square", "team": "math"}); err != nil {
		t.Fatal(err)
	}
	if len(images.Items) != 1 {
		t.Fatalf("%d images, want 1", len(images.Items))
	}
	image := &images.Items[0]
	equal(t, "tag", "registry.example.com/square:latest", image.Spec.Tag)
	equal(t, "owned by the function", true, metav1.IsControlledBy(image, function))
	equal(t, "events", []string{
		fmt.Sprintf("Normal Created: Created Image %q", image.Name),
		"Normal StatusUpdated: Updated status",
	}, w.Events)
	w.get(t, function)
	equal(t, "observed generation", int64(1), function.Status.ObservedGeneration)
	equal(t, "reference", image.Name, function.Status.KpackImageRef)
	equal(t, "ready", metav1.ConditionUnknown, function.Status.GetCondition("Ready").Status)

	function.Spec.Source = nil
	if err := w.Update(t.Context(), function); err != nil {
		t.Fatal(err)
	}
	reconcileRoot(t, parentFunctionReconciler(w.Config), function)
	w.get(t, function)
	equal(t, "latest image", "registry.example.com/square:latest", function.Status.LatestImage)
	equal(t, "ready", metav1.ConditionTrue, function.Status.GetCondition("Ready").Status)
	equal(t, "events", fmt.Sprintf("Normal Deleted: Deleted Image %q", image.Name), w.Events[2])
}

func TestV05_CastParent(t *testing.T) {
	var seen string
	function := newFunction()
	w := newWorld(t, function)
	reconcileRoot(t, &reconcilers.ParentReconciler[*Function]{
		Name: "Function",
		Type: &Function{},
		Reconciler: reconcilers.Sequence[*Function]{
			&reconcilers.CastParent[*Function, *ImageRef]{
				Reconciler: &reconcilers.SyncReconciler[*ImageRef]{
					Sync: func(ctx context.Context, parent *ImageRef) error {
						seen = parent.Spec.Image
						return reconcilers.AddParentFinalizer(ctx, parent, "test.finalizer")
					},
				},
			},
			parentChildImageReconciler(),
		},

		Config: w.Config,
	}, function)
	equal(t, "image", "registry.example.com/square", seen)
	w.get(t, function)
	equal(t, "finalizers", []string{"test.finalizer"}, function.Finalizers)
}

// parentSwapRESTConfig connects to another cluster. The documentation connects for each request; here it connects once.
func parentSwapRESTConfig(
	rc *rest.Config, nested reconcilers.SubReconciler[*Function],
) (reconcilers.SubReconciler[*Function], error) {
	cl, err := cluster.New(rc, func(o *cluster.Options) { o.Scheme = newScheme() })
	if err != nil {
		return nil, err
	}
	return &reconcilers.WithConfig[*Function]{
		Reconciler: reconcilers.Sequence[*Function]{nested},

		Config: func(_ context.Context, c reconcilers.Config) (reconcilers.Config, error) {
			return c.WithCluster(cl), nil
		},
	}, nil
}

func TestV05_WithConfig(t *testing.T) {
	function := newFunction()
	w := newWorld(t, function)
	called := false
	r, err := parentSwapRESTConfig(&rest.Config{Host: "https://127.0.0.1:1"}, &reconcilers.SyncReconciler[*Function]{
		Sync: func(ctx context.Context, _ *Function) error {
			called = true
			parentConfig, err := reconcilers.RetrieveParentConfig(ctx)
			equal(t, "the parent's config is unchanged", true, parentConfig == w.Config)
			equal(t, "the current config is the parent's config", false, reconcilers.RetrieveConfigOrDie(ctx) == w.Config)
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	reconcileBelow(t, w, r, function)
	equal(t, "called", true, called)
}

func TestV05_WithFinalizer(t *testing.T) {
	allocated, cleaned := 0, 0
	syncExternalState := &reconcilers.WithFinalizer[*Function]{
		Finalizer: "unique.finalizer.name",
		Reconciler: &reconcilers.SyncReconciler[*Function]{
			Sync: func(context.Context, *Function) error {
				allocated++
				return nil
			},
			Finalize: func(context.Context, *Function) error {
				cleaned++
				return nil
			},
		},
	}
	function := newFunction()
	w := newWorld(t, function)
	reconcileBelow(t, w, syncExternalState, function)
	w.get(t, function)
	equal(t, "finalizers", []string{"unique.finalizer.name"}, function.Finalizers)
	if err := w.Delete(t.Context(), function); err != nil {
		t.Fatal(err)
	}
	reconcileBelow(t, w, syncExternalState, function)
	equal(t, "allocated and cleaned", []int{1, 1}, []int{allocated, cleaned})
	w.gone(t, function)
}

// The documented test: the bytes of the patch, the event and the resource version in memory.
func TestV05_AddParentFinalizer(t *testing.T) {
	function := newFunction()
	function.ResourceVersion = "999"
	w := newWorld(t, function)
	reconcileBelow(t, w, &reconcilers.SyncReconciler[*Function]{
		Sync: func(ctx context.Context, parent *Function) error {
			if err := reconcilers.AddParentFinalizer(ctx, parent, "test.finalizer"); err != nil {
				return err
			}
			equal(t, "resource version", "1000", parent.ResourceVersion)
			return nil
		},
	}, function)
	equal(t, "patches", []string{`{"metadata":{"finalizers":["test.finalizer"],"resourceVersion":"999"}}`}, w.Patches)
	equal(t, "event", `Normal FinalizerPatched: Patched finalizer "test.finalizer"`, w.Events[0])

	w.get(t, function)
	reconcileBelow(t, w, &reconcilers.SyncReconciler[*Function]{
		Sync: func(ctx context.Context, parent *Function) error {
			return reconcilers.ClearParentFinalizer(ctx, parent, "test.finalizer")
		},
	}, function)
	w.get(t, function)
	equal(t, "finalizers", 0, len(function.Finalizers))
}

func TestV05_Stash(t *testing.T) {
	const exampleStashKey reconcilers.StashKey = "example"
	type Example struct{ Value string }
	var got Example
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), reconcilers.Sequence[*Function]{
		&reconcilers.SyncReconciler[*Function]{
			Name: "StashExample",
			Sync: func(ctx context.Context, _ *Function) error {
				reconcilers.StashValue(ctx, exampleStashKey, Example{Value: "exposed"})
				return nil
			},
		},
		&reconcilers.SyncReconciler[*Function]{
			Name: "StashExample",
			Sync: func(ctx context.Context, _ *Function) error {
				value, ok := reconcilers.RetrieveValue(ctx, exampleStashKey).(Example)
				if !ok {
					return fmt.Errorf("expected stashed value for key %q", exampleStashKey)
				}
				got = value
				return nil
			},
		},
	}, function)
	equal(t, "value", Example{Value: "exposed"}, got)
}

const gatewayImages = "gateway-images"

func parentSyncConfigReconciler(namespace string) reconcilers.SubReconciler[*Gateway] {
	return &reconcilers.SyncReconciler[*Gateway]{
		Name: "SyncConfig",
		Sync: func(ctx context.Context, parent *Gateway) error {
			c := reconcilers.RetrieveConfigOrDie(ctx)

			var config corev1.ConfigMap
			key := types.NamespacedName{Namespace: namespace, Name: gatewayImages}
			if err := c.TrackAndGet(ctx, key, &config); err != nil {
				return err
			}
			parent.Status.GatewayImage = config.Data["gateway"]
			return nil
		},

		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
	}
}

func TestV05_Tracker(t *testing.T) {
	images := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "system",
			Name:      gatewayImages,
		},
		Data: map[string]string{"gateway": "gateway:1"},
	}
	gateway := newGateway()
	w := newWorld(t, gateway, images)
	reconcileBelow(t, w, parentSyncConfigReconciler("system"), gateway)
	observers, err := w.Tracker.GetObservers(images)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "observers", []types.NamespacedName{client.ObjectKeyFromObject(gateway)}, observers)
	w.get(t, gateway)
	equal(t, "status", "gateway:1", gateway.Status.GatewayImage)
}
