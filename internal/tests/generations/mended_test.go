// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck // tests the deprecated names
package generations

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
	"trueup.dev/tracker"
	"trueup.dev/validation"
)

// These tests use the replacements from the guide for names that were removed since v0.5.

// FieldErrors received the parent field afterwards, by ViaField. Now the path is passed as an argument.
func validateImage(path *field.Path, image string) field.ErrorList {
	switch image {
	case "":
		return field.ErrorList{field.Required(path.Child("image"), "")} // was validation.ErrMissingField("image")
	case "latest":
		// was validation.ErrInvalidValue(image, "image")
		return field.ErrorList{field.Invalid(path.Child("image"), image, "name a version")}
	}
	return nil
}

func TestV05_FieldErrors(t *testing.T) {
	errs := field.ErrorList{}
	for i, image := range []string{"square:1", "", "latest"} {
		// was errs.Also(validateImage(image).ViaIndex(i).ViaField("containers"))
		errs = append(errs, validateImage(field.NewPath("containers").Index(i), image)...)
	}
	want := `[containers[1].image: Required value, containers[2].image: Invalid value: "latest": name a version]`
	equal(t, "error", want, errs.ToAggregate().Error())
}

// The scheme was a field of the config. What has a method Validate that takes a context is a validator.
func TestV05_Config(t *testing.T) {
	w := newWorld(t)
	equal(t, "knows the kind", true, w.Config.Scheme().Recognizes(group.WithKind("Function")))
	var validator validation.Validator = parentFunctionReconciler(w.Config)
	if err := validator.Validate(validation.WithRecursive(t.Context())); err != nil {
		t.Error(err)
	}
}

// Set-up of a ChildReconciler makes the index that IndexControllersOfType made.
func TestV05_ChildIndex(t *testing.T) {
	requireWiring(t, rtesting.Wiring{
		For:     []rtesting.Watch{{Object: &Function{}}},
		Owns:    []rtesting.Watch{{Object: &Image{}}},
		Tracks:  []rtesting.Watch{{Object: &Image{}}},
		Indexes: []rtesting.Index{{Object: &Image{}, Field: "trueup.dev/controller-uid"}},
	}, func(reconcilers.Config) reconcilers.SubReconciler[*Function] {
		var child interface {
			reconcilers.SubReconciler[*Function]
			SetupWithManager(ctx context.Context, mgr reconcilers.Manager, bldr *reconcilers.Builder) error
		} = &reconcilers.ChildReconciler[*Function, *Image, *ImageList]{
			DesiredChild:               func(context.Context, *Function) (*Image, error) { return nil, nil },
			MergeBeforeUpdate:          func(current, desired *Image) { current.Spec = desired.Spec },
			ReflectChildStatusOnParent: func(context.Context, *Function, *Image, error) {},
		}
		return child
	})
}

// A watch takes the object, where it took a source.Kind.
func TestV05_Watches(t *testing.T) {
	requireWiring(t, rtesting.Wiring{
		For:    []rtesting.Watch{{Object: &Function{}}},
		Tracks: []rtesting.Watch{{Object: &corev1.ConfigMap{}}},
	}, func(reconcilers.Config) reconcilers.SubReconciler[*Function] {
		return &reconcilers.SyncReconciler[*Function]{
			Sync: func(context.Context, *Function) error { return nil },
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&corev1.ConfigMap{}, reconcilers.EnqueueTracked(ctx))
				return nil
			},
		}
	})
}

// requireWiring compares what a subreconciler asks of a manager.
func requireWiring(
	t *testing.T, want rtesting.Wiring, factory func(c reconcilers.Config) reconcilers.SubReconciler[*Function],
) {
	t.Helper()
	rtesting.ReconcilerTests{
		"is set up": {Request: reconcilers.Request{NamespacedName: testKey}, ExpectWiring: &want},
	}.Run(t, testScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return &reconcilers.ResourceReconciler[*Function]{Reconciler: factory(c), Config: c}
	})
}

func TestV05_TrackerKey(t *testing.T) {
	tracked, name := tracker.New(testScheme, time.Hour), types.NamespacedName{Namespace: "default", Name: "settings"}
	key := tracker.NewKey(corev1.SchemeGroupVersion.WithKind("ConfigMap"), name)
	function := newFunction()
	reference := tracker.Reference{
		APIGroup:  key.GroupKind.Group,
		Kind:      key.GroupKind.Kind,
		Namespace: name.Namespace,
		Name:      name.Name,
	}
	if err := tracked.TrackReference(reference, function); err != nil { // was Track(ctx, key, parent)
		t.Fatal(err)
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	observers, err := tracked.GetObservers(settings) // was Lookup(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "observers", []types.NamespacedName{client.ObjectKeyFromObject(function)}, observers)
}

// A subreconciler that is shared by several kinds takes client.Object, and each kind casts.
func TestV11_SharedSubReconciler(t *testing.T) {
	var labeled []string
	shared := &reconcilers.SyncReconciler[client.Object]{Sync: func(_ context.Context, resource client.Object) error {
		labeled = append(labeled, resource.GetName())
		return nil
	}}
	function := newFunction()
	reconcileBelow(
		t, newWorld(t, function), &reconcilers.CastResource[*Function, client.Object]{Reconciler: shared}, function,
	)
	equal(t, "called for", []string{function.Name}, labeled)
}

// ChildSetReconciler and AggregateReconciler have the same fields as a ResourceManager.
func TestV19_ObjectManagerFields(t *testing.T) {
	merge := func(current, desired *corev1.ConfigMap) { current.Data = desired.Data }
	harmonize := func(current, desired *corev1.ConfigMap) { desired.Immutable = current.Immutable }
	sanitize := func(child *corev1.ConfigMap) any { return len(child.Data) }
	w := newWorld(t)
	for name, r := range map[string]validation.Validator{
		"ChildSetReconciler": &reconcilers.ChildSetReconciler[*Function, *corev1.ConfigMap, *corev1.ConfigMapList]{
			DesiredChildren:               func(context.Context, *Function) ([]*corev1.ConfigMap, error) { return nil, nil },
			IdentifyChild:                 func(child *corev1.ConfigMap) string { return child.Name },
			ReflectChildrenStatusOnParent: func(context.Context, *Function, reconcilers.ChildSetResult[*corev1.ConfigMap]) {},
			HarmonizeImmutableFields:      harmonize,
			MergeBeforeUpdate:             merge,
			Sanitize:                      sanitize,
		},
		"AggregateReconciler": &reconcilers.AggregateReconciler[*corev1.ConfigMap]{
			Request: reconcilers.Request{NamespacedName: testKey},
			DesiredResource: func(
				_ context.Context, resource *corev1.ConfigMap,
			) (*corev1.ConfigMap, error) {
				return resource, nil
			},
			HarmonizeImmutableFields: harmonize,
			MergeBeforeUpdate:        merge,
			Sanitize:                 sanitize,
			Config:                   w.Config,
		},
	} {
		if err := r.Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A halt is not a failure. The request is retried unless the status has changed.
func TestV19_HaltedResult(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testKey.Namespace, Name: testKey.Name}}
	rtesting.ReconcilerTests{
		"halts": {
			Request:        reconcilers.Request{NamespacedName: testKey},
			GivenObjects:   []client.Object{cm},
			ExpectedResult: reconcilers.Result{Requeue: true}, // empty to v0.19
		},
	}.Run(t, testScheme, func(_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config) reconcile.Reconciler {
		return &reconcilers.ResourceReconciler[*corev1.ConfigMap]{
			Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{Sync: func(context.Context, *corev1.ConfigMap) error {
				return reconcilers.ErrHaltSubReconcilers // was reconcilers.HaltSubReconcilers
			}},
			Config: c,
		}
	})
}

// InitializeConditions without a context is also called: newFunction has such a method.
func TestV19_InitializeConditions(t *testing.T) {
	function := newFunction()
	w := newWorld(t, function)
	reconcileBelow(t, w, reconcilers.Sequence[*Function]{}, function)
	w.get(t, function)
	equal(t, "ready", metav1.ConditionUnknown, function.Status.GetCondition("Ready").Status)
}

// Both packages support keys and typed stashers.
func TestV19_Stash(t *testing.T) {
	ctx := stash.WithContext(t.Context())
	stash.StoreValue(ctx, "color", "blue")
	equal(t, "value", any("blue"), stash.RetrieveValue(ctx, "color"))
	stash.New[int]("size").Store(ctx, 3)
	equal(t, "size", 3, reconcilers.NewStasher[int]("size").RetrieveOrDie(ctx))
}
