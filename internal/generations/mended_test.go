// SPDX-License-Identifier: Apache-2.0

//nolint:staticcheck // the old names are what is tested
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

	"trueup.dev/apis"
	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

// What replaces names that are gone since v0.5, as the guide has it.

// FieldErrors of a part took the field that it is in afterwards, by ViaField. A path is given beforehand.
func validateImage(path *field.Path, image string) field.ErrorList {
	if image == "" {
		return field.ErrorList{field.Required(path.Child("image"), "")}
	}
	return nil
}

func TestV05_FieldErrors(t *testing.T) {
	errs := field.ErrorList{}
	errs = append(errs, validateImage(field.NewPath("spec"), "")...) // was errs.Also(validateImage("").ViaField("spec"))
	equal(t, "error", "spec.image: Required value", errs.ToAggregate().Error())
}

func TestV05_TrackerKey(t *testing.T) {
	tracked, name := tracker.New(testScheme, time.Hour), types.NamespacedName{Namespace: "default", Name: "settings"}
	key := tracker.NewKey(corev1.SchemeGroupVersion.WithKind("ConfigMap"), name)
	function := newFunction()
	reference := tracker.Reference{APIGroup: key.GroupKind.Group, Kind: key.GroupKind.Kind, Namespace: name.Namespace, Name: name.Name}
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

func TestV05_Conditions(t *testing.T) {
	const ready = "Ready" // was apis.ConditionType
	condition := metav1.Condition{Type: ready, Status: metav1.ConditionTrue, Reason: "Deployed"}
	equal(t, "is true", true, apis.ConditionIsTrue(&condition)) // was condition.IsTrue()
}

// A sub reconciler that several kinds share takes client.Object, and each kind casts.
func TestV11_SharedSubReconciler(t *testing.T) {
	var labeled []string
	shared := &reconcilers.SyncReconciler[client.Object]{Sync: func(_ context.Context, resource client.Object) error {
		labeled = append(labeled, resource.GetName())
		return nil
	}}
	function := newFunction()
	reconcileBelow(t, newWorld(t, function), &reconcilers.CastResource[*Function, client.Object]{Reconciler: shared}, function)
	equal(t, "called for", []string{function.Name}, labeled)
}
