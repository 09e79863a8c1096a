// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtime "trueup.dev/time"
)

type recreating = reconcilers.RecreatingObjectManager[*corev1.ConfigMap]

func TestRecreatingObjectManager(t *testing.T) {
	immutable := refused(field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	const (
		update   = "update ConfigMap default/child"
		probe    = "create ConfigMap default/child-1"
		deletion = "delete ConfigMap default/child"
		event    = `event default/test Normal Recreating: Recreating ConfigMap "child": data cannot be changed`
		failed   = `event default/test Warning UpdateFailed: Failed to update ConfigMap "child": `
	)
	keeps := func(reason string) string { return failed + immutable.Error() + "; not recreated: " + reason }
	quota := apierrs.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errTest)
	for name, tc := range map[string]struct {
		fields []string
		live   *corev1.ConfigMap
		fails  map[string]error
		want   []string
		err    error
		// temporary stands for an error of any kind that is retried.
		temporary bool
	}{
		"recreates": {
			fails: map[string]error{update: immutable}, want: []string{update, probe, deletion, event},
		},
		"updates what can be updated": {want: []string{update, `event default/test Normal Updated: Updated ConfigMap "child"`}},
		"returns other errors": {
			fails: map[string]error{update: errTest}, want: []string{update, failed + errTest.Error()}, err: errTest,
		},
		"recreates for a field below": {
			fields: []string{"data"},
			fails:  map[string]error{update: immutable}, want: []string{update, probe, deletion, event},
		},
		"keeps the object for another field": {
			fields: []string{"dat", "data.key"}, fails: map[string]error{update: immutable},
			want: []string{update, failed + immutable.Error()}, err: immutable,
		},
		"keeps the object if the new one is refused": {
			fails: map[string]error{update: immutable, probe: quota},
			want:  []string{update, probe, keeps("a dry run of the creation failed: " + quota.Error())}, err: immutable,
		},
		"fails if the new one cannot be checked": {
			fails: map[string]error{update: immutable, probe: errTest}, err: errTest,
			want: []string{
				update, probe, `event default/test Warning RecreationFailed: Failed to recreate ConfigMap "child": ` +
					"a dry run of the creation failed: " + errTest.Error(),
			},
		},
		"keeps an object that another resource controls": {
			live:  newConfigMap("child", controlledBy("other")),
			fails: map[string]error{update: immutable}, want: []string{update, keeps(`Resource "test" controls it`)},
			err: immutable,
		},
		"fails if the object was created again": {
			live:  newConfigMap("child", func(cm *corev1.ConfigMap) { cm.UID = "other" }),
			fails: map[string]error{update: immutable},
			want: []string{update, `event default/test Warning RecreationFailed: Failed to recreate ConfigMap "child": ` +
				"it was deleted or created again in the meantime"},
			temporary: true,
		},
		"waits if the object is being deleted": {
			live: newConfigMap("child", deleting), fails: map[string]error{update: immutable}, want: []string{update},
		},
		"does nothing if the object is gone": {
			live: newConfigMap("another"), fails: map[string]error{update: immutable}, want: []string{update},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newConfigMap("child"))
			if tc.live != nil {
				w.Config.APIReader = newWorld(t, tc.live).Server
			}
			for line, err := range tc.fails {
				w.Fail(line, err)
			}
			manager := &recreating{Fields: tc.fields, Manager: &configMaps{MergeBeforeUpdate: mergeData}}
			got, err := manager.Manage(w.Context(), newResource(), newConfigMap("child"), wanted("child", "key", "other"))
			if tc.temporary {
				equal(t, "temporary", true, err != nil && !apierrs.IsInvalid(err))
			} else {
				wantErr(t, tc.err, err)
			}
			equal(t, "writes", tc.want, w.Writes())
			if stored(w, newConfigMap("child-1")) != nil {
				t.Error("the dry run has created an object")
			}
			if err == nil && tc.fails != nil && got != nil {
				t.Errorf("the deleted object is returned: %v", got)
			}
		})
	}
}

// A webhook that changes an immutable field of each new object must not cause a loop.
func TestRecreatingObjectManager_Interval(t *testing.T) {
	w := newWorld(t)
	w.Fail("update ConfigMap", refused(field.Invalid(field.NewPath("data"), "", "field is immutable")))
	manager := &recreating{Manager: &configMaps{MergeBeforeUpdate: mergeData}}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		after   time.Duration
		uid     types.UID
		value   string
		deletes bool
	}{
		{0, "1", "a", true},
		{time.Minute, "1", "a", true}, // the deletion had no effect
		{2 * time.Minute, "2", "a", false},
		{3 * time.Minute, "2", "b", true}, // another desired state
		{4 * time.Minute, "3", "b", false},
		{13 * time.Minute, "3", "b", true},
	} {
		child := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.UID = step.uid })
		_ = w.Server.Delete(t.Context(), newConfigMap("child"))
		child.ResourceVersion = ""
		wantErr(t, nil, w.Server.Create(t.Context(), child))
		w.Trace()
		ctx := rtime.StashNow(w.Context(), start.Add(step.after))
		_, err := manager.Manage(ctx, newResource(), child, wanted("child", "key", step.value))
		deletes := slices.Contains(w.Writes(), "delete ConfigMap default/child")
		equal(t, "deletes after "+step.after.String(), step.deletes, deletes)
		equal(t, "fails after "+step.after.String(), !step.deletes, apierrs.IsInvalid(err))
	}
}

func TestRecreatingObjectManager_KeepsData(t *testing.T) {
	set := func(whenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType) client.Object {
		return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: whenDeleted,
			},
		}}
	}
	for name, tc := range map[string]struct {
		object      client.Object
		propagation metav1.DeletionPropagation
		allow       bool
		keeps       bool
	}{
		"claim":            {object: &corev1.PersistentVolumeClaim{}, keeps: true},
		"volume":           {object: &corev1.PersistentVolume{}, keeps: true},
		"namespace":        {object: &corev1.Namespace{}, keeps: true},
		"set with claims":  {object: set(appsv1.DeletePersistentVolumeClaimRetentionPolicyType), keeps: true},
		"set keeps claims": {object: set(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)},
		"set, default":     {object: &appsv1.StatefulSet{}},
		"set, orphaned": {
			object:      set(appsv1.DeletePersistentVolumeClaimRetentionPolicyType),
			propagation: metav1.DeletePropagationOrphan,
		},
		"allowed":    {object: &corev1.PersistentVolumeClaim{}, allow: true},
		"config map": {object: &corev1.ConfigMap{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.object.SetNamespace("default")
			tc.object.SetName("child")
			tc.object.SetUID("1")
			tc.object.SetCreationTimestamp(longAgo)
			w := newWorld(t, tc.object.DeepCopyObject().(client.Object))
			w.Fail("update", refused(field.Invalid(field.NewPath("spec"), "", "field is immutable")))
			manager := &reconcilers.RecreatingObjectManager[client.Object]{
				Propagation: tc.propagation, AllowDataLoss: tc.allow,
				Manager: &reconcilers.UpdatingObjectManager[client.Object]{
					Type:              tc.object,
					MergeBeforeUpdate: func(current, desired client.Object) { current.SetLabels(desired.GetLabels()) },
				},
			}
			actual, desired := tc.object, tc.object.DeepCopyObject().(client.Object)
			wantErr(t, nil, w.Server.Get(t.Context(), client.ObjectKeyFromObject(actual), actual))
			desired.SetLabels(map[string]string{"a": "b"})
			_, err := manager.Manage(w.Context(), newResource(), actual, desired)
			left := w.Server.Get(t.Context(), client.ObjectKeyFromObject(actual), actual) == nil
			equal(t, "keeps the object", tc.keeps, left)
			equal(t, "reports it", tc.keeps, err != nil && strings.Contains(err.Error(), "set AllowDataLoss to accept that"))
		})
	}
}

// New pods start when the old ones are gone: the object exists until then.
func TestRecreatingObjectManager_Propagation(t *testing.T) {
	const foreground, background = metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	custom := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Job"}}
	for name, tc := range map[string]struct {
		object    client.Object
		set, want metav1.DeletionPropagation
	}{
		"Job":                   {object: &batchv1.Job{}, want: foreground},
		"CronJob":               {object: &batchv1.CronJob{}, want: foreground},
		"Deployment":            {object: &appsv1.Deployment{}, want: foreground},
		"StatefulSet":           {object: &appsv1.StatefulSet{}, want: foreground},
		"ReplicaSet":            {object: &appsv1.ReplicaSet{}, want: foreground},
		"DaemonSet":             {object: &appsv1.DaemonSet{}, want: foreground},
		"ReplicationController": {object: &corev1.ReplicationController{}, want: foreground},
		"Job, set":              {object: &batchv1.Job{}, set: background, want: background},
		"ConfigMap":             {object: &corev1.ConfigMap{}, want: background},
		"ConfigMap, set":        {object: &corev1.ConfigMap{}, set: foreground, want: foreground},
		"custom kind":           {object: custom, want: background},
	} {
		t.Run(name, func(t *testing.T) {
			tc.object.SetNamespace("default")
			tc.object.SetName("child")
			tc.object.SetUID("1")
			tc.object.SetCreationTimestamp(longAgo)
			w := newWorld(t, tc.object.DeepCopyObject().(client.Object))
			w.Fail("update", refused(field.Invalid(field.NewPath("spec"), "", "field is immutable")))
			manager := &reconcilers.RecreatingObjectManager[client.Object]{
				Propagation: tc.set,
				Manager: &reconcilers.UpdatingObjectManager[client.Object]{
					Type:              tc.object,
					MergeBeforeUpdate: func(current, desired client.Object) { current.SetLabels(desired.GetLabels()) },
				},
			}
			wantErr(t, nil, w.Server.Get(t.Context(), client.ObjectKeyFromObject(tc.object), tc.object))
			desired := tc.object.DeepCopyObject().(client.Object)
			desired.SetLabels(map[string]string{"a": "b"})
			_, err := manager.Manage(w.Context(), newResource(), tc.object, desired)
			wantErr(t, nil, err)
			equal(t, "number of deletions", 1, len(w.deletes))
			equal(t, "propagation", &tc.want, w.deletes[0].PropagationPolicy)
		})
	}
}

// While the pods of the deleted object are waited for, nothing is written.
func TestRecreatingObjectManager_WaitsForPods(t *testing.T) {
	w := newWorld(t, newConfigMap("child"))
	w.Fail("update ConfigMap", refused(field.Invalid(field.NewPath("data"), "", "field is immutable")))
	manager := &recreating{Manager: &configMaps{MergeBeforeUpdate: mergeData}}
	_, err := manager.Manage(w.Context(), newResource(), newConfigMap("child"), wanted("child", "key", "other"))
	wantErr(t, nil, err)
	w.Trace()
	old := newConfigMap("child", deleting)
	got, err := manager.Manage(w.Context(), newResource(), old, wanted("child", "key", "other"))
	wantErr(t, nil, err)
	if got != nil {
		t.Errorf("the object that is being deleted is returned: %v", got)
	}
	equal(t, "calls", nil, w.Trace())
}

// With kubectl delete --cascade=orphan, what a resource owns stays.
func TestRecreatingObjectManager_Orphan(t *testing.T) {
	const deletion = "delete ConfigMap default/child"
	orphaning := finalizer(metav1.FinalizerOrphanDependents)
	owned := newConfigMap("child").OwnerReferences
	for name, tc := range map[string]struct {
		parent  *fixture.Resource
		live    *corev1.ConfigMap
		desired []metav1.OwnerReference
		deletes bool
	}{
		"owned":                  {newResource(orphaning, terminating), newConfigMap("child"), owned, false},
		"not owned any more":     {newResource(terminating), newConfigMap("child", orphan), owned, false},
		"never owned":            {newResource(orphaning, terminating), newConfigMap("child", orphan), nil, true},
		"not orphaned":           {newResource(terminating), newConfigMap("child"), owned, true},
		"the parent stays, too":  {newResource(orphaning), newConfigMap("child"), owned, true},
		"released, parent stays": {newResource(), newConfigMap("child", orphan), owned, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.live)
			w.Fail("update ConfigMap", refused(field.Invalid(field.NewPath("data"), "", "field is immutable")))
			manager := &recreating{Manager: &configMaps{MergeBeforeUpdate: mergeData}}
			desired := wanted("child", "key", "other")
			desired.OwnerReferences = tc.desired
			got, err := manager.Manage(w.Context(), tc.parent, tc.live, desired)
			wantErr(t, nil, err)
			equal(t, "deletes", tc.deletes, slices.Contains(w.Writes(), deletion))
			equal(t, "returns the object", !tc.deletes, got != nil)
		})
	}
}

func TestRecreatingObjectManager_Validate(t *testing.T) {
	w := newWorld(t)
	wantText(t, "RecreatingObjectManager \"ConfigMapRecreatingObjectManager\" must define Manager\n"+
		"RecreatingObjectManager \"ConfigMapRecreatingObjectManager\" must define a known Propagation, not \"orphan\"",
		(&recreating{Propagation: "orphan"}).SetupWithManager(w.Context(), nil, nil))
	valid := &recreating{Manager: &configMaps{MergeBeforeUpdate: mergeData}}
	wantErr(t, nil, valid.SetupWithManager(w.Context(), nil, nil))
	equal(t, "finalizer", "held", (&recreating{Manager: &configMaps{Finalizer: "held"}}).HeldFinalizer())
}

func ExampleRecreatingObjectManager() {
	_ = &reconcilers.ChildReconciler[*fixture.Resource, *appsv1.StatefulSet, *appsv1.StatefulSetList]{
		ChildObjectManager: &reconcilers.RecreatingObjectManager[*appsv1.StatefulSet]{
			Manager: &reconcilers.ApplyingObjectManager[*appsv1.StatefulSet]{},
			// Claim templates cannot change. The pods and the claims remain, and the new set adopts the pods.
			Fields: []string{"spec"}, Propagation: metav1.DeletePropagationOrphan,
		},
	}
}
