// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck,govet // tests the deprecated names
package generations

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// The documented tests of v0.1 to v0.5: suites, run by Test, with a Key or a Parent. Suites of subreconcilers now have
// a type parameter. Kinds with a status subresource are listed, because the in-memory API of those versions did not
// support them.

const imagesStashKey reconcilers.StashKey = "images"

// trackImages is a subreconciler that tracks a ConfigMap, loads and stashes it.
func trackImages(namespace string) reconcilers.SubReconciler[*Function] {
	return &reconcilers.SyncReconciler[*Function]{
		Name: "SyncImages",
		Sync: func(ctx context.Context, _ *Function) error {
			var images corev1.ConfigMap
			key := types.NamespacedName{Namespace: namespace, Name: "images"}
			if err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, &images); err != nil {
				return err
			}
			reconcilers.StashValue(ctx, imagesStashKey, images.Data)
			return nil
		},
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
	}
}

// trackingFunctionReconciler is a root reconciler for the documented test cases.
func trackingFunctionReconciler(c reconcilers.Config, namespace string) *reconcilers.ParentReconciler[*Function] {
	root := parentFunctionReconciler(c)
	root.Reconciler = reconcilers.Sequence[*Function]{trackImages(namespace), root.Reconciler}
	return root
}

// functionDie wraps a Function as a "die" does: a copy of it is the Function itself.
type functionDie struct{ *Function }

func (d functionDie) DeepCopyObject() runtime.Object { return d.Function.DeepCopyObject() }

// StatusDie returns a die whose status was changed.
func (d functionDie) StatusDie(change func(status *FunctionStatus)) functionDie {
	changed := copied(d.Function)
	change(&changed.Status)
	return functionDie{changed}
}

// MetadataDie returns a die whose metadata was changed.
func (d functionDie) MetadataDie(change func(metadata *metav1.ObjectMeta)) functionDie {
	changed := copied(d.Function)
	change(&changed.ObjectMeta)
	return functionDie{changed}
}

// DieReleasePtr returns the Function of the die.
func (d functionDie) DieReleasePtr() *Function { return copied(d.Function) }

// These variables are shared by the cases of all generations.
var (
	testScheme = newScheme()
	testKey    = types.NamespacedName{Namespace: "default", Name: "square"}

	function        = functionDie{newFunction()}
	imagesConfigMap = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "images"}, Data: map[string]string{"run": "run:1"},
	}
	imageCreate = &Image{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", GenerateName: "square-function-",
			Labels:          map[string]string{"team": "math", functionLabel: "square"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(function, group.WithKind("Function"))},
		},
		Spec: ImageSpec{Tag: "registry.example.com/square:latest"},
	}
)

// createsImage is the case of a root reconciler that all generations document, without the field that names the
// resource.
func createsImage() rtesting.ReconcilerTestCase {
	return rtesting.ReconcilerTestCase{
		StatusSubResourceTypes: []client.Object{&Function{}},
		GivenObjects: []client.Object{
			function,
			imagesConfigMap,
		},
		ExpectTracks: []rtesting.TrackRequest{
			rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
		},
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(
				function, testScheme, corev1.EventTypeNormal, "Created", `Created Image "%s"`, "square-function-001",
			),
			rtesting.NewEvent(function, testScheme, corev1.EventTypeNormal, "StatusUpdated", `Updated status`),
		},
		ExpectCreates: []client.Object{
			imageCreate,
		},
		ExpectStatusUpdates: []client.Object{
			function.
				StatusDie(func(status *FunctionStatus) {
					status.ObservedGeneration = 1
					status.InitializeConditions()
					status.MarkImageResolved()
					status.PropagateImageStatus("")
					status.TargetImage = "registry.example.com/square:latest"
					status.KpackImageRef = "square-function-001"
				}),
		},
	}
}

func TestV05_ReconcilerTestSuite(t *testing.T) {
	createsImage := createsImage()
	createsImage.Name = "creates image"
	createsImage.Key = testKey

	rts := rtesting.ReconcilerTestSuite{
		{
			Name: "no longer exists",
			Key:  testKey,
		},
		createsImage,
		{
			Name:         "waits for images",
			Key:          testKey,
			GivenObjects: []client.Object{function},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			StatusSubResourceTypes: []client.Object{&Function{}},
			ExpectStatusUpdates: []client.Object{
				function.StatusDie(func(status *FunctionStatus) { status.InitializeConditions() }),
			},
			ExpectEvents: []rtesting.Event{
				rtesting.NewEvent(function, testScheme, corev1.EventTypeNormal, "StatusUpdated", `Updated status`),
			},
			ShouldErr: true,
		},
	}

	rts.Test(t, testScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return trackingFunctionReconciler(c, "system")
	})
}

func TestV05_SubReconcilerTestSuite(t *testing.T) {
	rts := rtesting.SubReconcilerTestSuite[*Function]{
		{
			Name:   "missing images configmap",
			Parent: function.DieReleasePtr(),
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			ShouldErr: true,
		},
		{
			Name:   "stash images",
			Parent: function.DieReleasePtr(),
			GivenObjects: []client.Object{
				imagesConfigMap,
			},
			GivenStashedValues: map[reconcilers.StashKey]interface{}{
				imagesStashKey: map[string]string{"run": "run:0"},
			},
			ExpectTracks: []rtesting.TrackRequest{
				rtesting.NewTrackRequest(imagesConfigMap, function, testScheme),
			},
			ExpectStashedValues: map[reconcilers.StashKey]interface{}{
				imagesStashKey: imagesConfigMap.Data,
			},
		},
	}

	rts.Test(
		t,
		testScheme,
		func(
			*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
		) reconcilers.SubReconciler[*Function] {
			return trackImages("system")
		},
	)
}

// The case adds a finalizer and expects the bytes of the patch, the event and the resource version.
func TestV05_FinalizerCase(t *testing.T) {
	tc := rtesting.SubReconcilerTestCase[*Function]{
		Name:   "add 'test.finalizer' finalizer",
		Parent: function.DieReleasePtr(),
		ExpectEvents: []rtesting.Event{
			rtesting.NewEvent(function, testScheme, corev1.EventTypeNormal, "FinalizerPatched",
				`Patched finalizer %q`, "test.finalizer"),
		},
		ExpectParent: function.
			MetadataDie(func(metadata *metav1.ObjectMeta) {
				metadata.Finalizers = []string{"test.finalizer"}
				metadata.ResourceVersion = "1000"
			}).DieReleasePtr(),
		ExpectPatches: []rtesting.PatchRef{
			{
				Group:     "generations.trueup.dev",
				Kind:      "Function",
				Namespace: function.GetNamespace(),
				Name:      function.GetName(),
				PatchType: types.MergePatchType,
				Patch:     []byte(`{"metadata":{"finalizers":["test.finalizer"],"resourceVersion":"999"}}`),
			},
		},
	}

	tc.Test(
		t,
		testScheme,
		func(
			*testing.T, *rtesting.SubReconcilerTestCase[*Function], reconcilers.Config,
		) reconcilers.SubReconciler[*Function] {
			return &reconcilers.SyncReconciler[*Function]{
				Sync: func(ctx context.Context, parent *Function) error {
					return reconcilers.AddParentFinalizer(ctx, parent, "test.finalizer")
				},
			}
		},
	)
}
