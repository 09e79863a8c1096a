// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// adopting makes a ChildReconciler adopt objects with a label.
func adopting(r *childReconciler) {
	r.Adopt = func(_ context.Context, _ *fixture.Resource, cm *corev1.ConfigMap) bool {
		return cm.Labels["adopt"] == "me"
	}
}

// releasing makes a ChildReconciler release children with a label, and desires none.
func releasing(r *childReconciler) {
	r.DesiredChild = desire(nil, nil)
	r.Release = func(_ context.Context, _ *fixture.Resource, cm *corev1.ConfigMap) bool {
		return cm.Labels["adopt"] == "me"
	}
}

func labeled(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"adopt": "me"} }

func ofAnother(cm *corev1.ConfigMap) {
	cm.OwnerReferences[0].UID, cm.OwnerReferences[0].Name = "another", "another"
}

// owners returns the patch of the owner references of the child.
func owners(list string) []rtesting.PatchRef {
	return []rtesting.PatchRef{{
		Kind: "ConfigMap", Namespace: "default", Name: "child", PatchType: types.MergePatchType,
		Patch: []byte(`{"metadata":{"ownerReferences":` + list + `,"resourceVersion":"999"}}`),
	}}
}

const ourReference = `{"apiVersion":"fixture.trueup.dev/v1","blockOwnerDeletion":true,"controller":true,"kind":"Resource",` +
	`"name":"test","uid":"parent"}`

func TestChildReconciler_Adopt(t *testing.T) {
	const otherReference = `{"apiVersion":"v1","kind":"Secret","name":"other","uid":"other"}`
	ownedByASecret := func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other"}}
	}
	parent, reflected := newResource(), newResource(reflecting(`"child"`))
	refused := newConfigMap("child", labeled, ofAnother)
	unselected := newConfigMap("child", orphan)
	subReconcilerTests{
		// It gets an owner, and is then updated.
		"adopted": {
			Resource: parent, Metadata: changes(adopting), GivenObjects: objects{newConfigMap("child", orphan, labeled)},
			ExpectPatches:  owners("[" + ourReference + "]"),
			ExpectUpdates:  objects{newConfigMap("child")},
			ExpectEvents:   events{eventFor("Adopted", "child"), updatedChild},
			ExpectResource: reflected,
		},
		// Owners that are no controllers stay.
		"with another owner": {
			Resource: parent, Metadata: changes(adopting),
			GivenObjects:  objects{newConfigMap("child", ownedByASecret, labeled)},
			ExpectPatches: owners("[" + otherReference + "," + ourReference + "]"),
			ExpectUpdates: objects{newConfigMap("child", func(cm *corev1.ConfigMap) {
				ours := cm.OwnerReferences[0]
				ownedByASecret(cm)
				cm.OwnerReferences = append(cm.OwnerReferences, ours)
			})},
			ExpectEvents:   events{eventFor("Adopted", "child"), updatedChild},
			ExpectResource: reflected,
		},
		// An object that another controller owns is refused, and the reason is reflected.
		"of another controller": {
			Resource: parent, Metadata: changes(adopting), GivenObjects: objects{refused}, APIGivenObjects: objects{refused},
			ExpectTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(refused, parent, scheme)},
			ExpectResource: newResource(reflecting(`nothing: ConfigMap "child" already exists and is controlled by Resource "another"`)),
		},
		// The rule does not select it.
		"not selected": {
			Resource: parent, Metadata: changes(adopting), GivenObjects: objects{unselected},
			APIGivenObjects: objects{unselected}, ExpectCreates: objects{rtesting.With(wanted("child"), claimed)},
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(unselected, parent, scheme)},
			ExpectEvents: events{warning("CreationFailed",
				`Failed to create ConfigMap "child": configmaps "child" already exists`)},
			ExpectResource: newResource(reflecting(`nothing: configmaps "child" already exists`)),
		},
		// Without an object, the child is created.
		"none": {
			Resource: parent, Metadata: changes(adopting), ExpectCreates: objects{rtesting.With(wanted("child"), claimed)},
			ExpectEvents: events{createdChild}, ExpectResource: reflected,
		},
		// A child that is no longer desired stays without an owner.
		"released": {
			Resource: parent, Metadata: changes(releasing), GivenObjects: objects{newConfigMap("child", labeled)},
			ExpectPatches: owners("null"), ExpectEvents: events{eventFor("Released", "child")},
			ExpectResource: newResource(reflecting("nothing")),
		},
		// The rule does not select it.
		"not released": {
			Resource: parent, Metadata: changes(releasing), GivenObjects: objects{newConfigMap("child")},
			ExpectDeletes: deletes("child"), ExpectEvents: events{deletedChild},
			ExpectResource: newResource(reflecting("nothing")),
		},
	}.Run(t, scheme, childFactory)
}

// A parent that the cache still has, but that is being deleted, adopts nothing.
func TestChildReconciler_AdoptByADeletedParent(t *testing.T) {
	parent := newResource()
	deleted := newResource(finalizer("hold"))
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	stale := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(parent, newConfigMap("child", orphan, labeled)).WithStatusSubresource(parent).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deleted).Build()
	child := newChild(showReflected)
	adopting(child)
	root := &reconcilers.ResourceReconciler[*fixture.Resource]{
		Reconciler: child,
		Config:     reconcilers.Config{Client: stale, APIReader: live, Recorder: &record.FakeRecorder{}},
	}
	_, err := root.Reconcile(t.Context(), reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(parent)})
	if err == nil || !strings.Contains(err.Error(), "was deleted: it gets no child") {
		t.Errorf("error %v", err)
	}
	object := &corev1.ConfigMap{}
	if err := stale.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, object); err != nil {
		t.Fatal(err)
	}
	if len(object.OwnerReferences) != 0 {
		t.Errorf("owners %v", object.OwnerReferences)
	}
}

func TestChildReconciler_AdoptNeedsOwnerReferences(t *testing.T) {
	child := newChild(showReflected)
	adopting(child)
	withoutOwner(child)
	wantText(t, `ChildReconciler "ConfigMapChildReconciler" must not implement Adopt or Release since owner references are `+
		"not used", child.Validate(t.Context()))
}
