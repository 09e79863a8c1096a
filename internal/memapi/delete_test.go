// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const hold = "example.org/hold"

// held returns the stored form of a widget that is being deleted and has a finalizer.
func held(w *world, finalizers ...string) *Widget {
	w.Helper()
	obj := widget("a")
	obj.Finalizers = append([]string{hold}, finalizers...)
	w.create(obj)
	w.must(w.c.Delete(w.Context(), obj))
	w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

func TestDelete(t *testing.T) {
	runRules(t, []rule{
		{"removes an object", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			want := obj.DeepCopy()
			w.must(w.c.Delete(w.Context(), obj))
			w.equal("caller's object", want, obj)
			w.wantChanges(before, "DELETED ConfigMap a +1")
			w.wantError(
				w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), obj), 404, metav1.StatusReasonNotFound,
				`configmaps "a" not found`,
			)
		}},
		{"the event has the last state and the version of the deletion", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj))
			event := w.Events(2)[0]
			w.equal("old version", "2", event.Old.GetResourceVersion())
			obj.ResourceVersion = "3"
			w.equal("object", client.Object(obj), event.Object)
		}},
		{"of a missing object", func(w *world) {
			w.wantError(w.c.Delete(w.Context(), configMap("a")), 404, metav1.StatusReasonNotFound, `configmaps "a" not found`)
		}},
		{"with finalizers marks the object, once", func(w *world) {
			obj := held(w)
			w.equal("deletion", metav1.Unix(start.Unix(), 0), *obj.DeletionTimestamp)
			w.equal("grace", int64(0), *obj.DeletionGracePeriodSeconds)
			w.equal("generation", int64(2), obj.Generation)
			before := w.Version()
			w.now = start.Add(time.Hour)
			w.must(w.c.Delete(w.Context(), obj))
			w.wantChanges(before)
		}},
		{"ends with the last finalizer, and the response has the previous version", func(w *world) {
			obj := held(w)
			version, before := obj.ResourceVersion, w.Version()
			obj.Finalizers = nil
			w.must(w.c.Update(w.Context(), obj))
			w.equal("version", version, obj.ResourceVersion)
			w.wantChanges(before, "DELETED Widget a +1")
			w.equal("finalizers in the event", []string{hold}, w.Events(before)[0].Object.GetFinalizers())
		}},
		{"does not end when one of two finalizers is removed", func(w *world) {
			obj := held(w, "example.org/other")
			before := w.Version()
			obj.Finalizers = []string{hold}
			w.must(w.c.Update(w.Context(), obj))
			w.wantChanges(before, "MODIFIED Widget a +1")
		}},
		{"ends by a patch as well", func(w *world) {
			obj := held(w)
			before := w.Version()
			w.must(
				w.c.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))),
			)
			w.wantChanges(before, "DELETED Widget a +1")
		}},
		{"allows no more finalizers", func(w *world) {
			obj := held(w)
			obj.Finalizers = append(obj.Finalizers, "example.org/other")
			w.wantError(w.c.Update(w.Context(), obj), 422, metav1.StatusReasonInvalid, `Widget.example.org "a" is invalid: metadata.finalizers: Forbidden: `+
				`no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.org/other"}`)
		}},
		{"precondition on the UID", func(w *world) {
			obj := widget("a")
			w.create(obj)
			err := w.c.Delete(w.Context(), obj, client.Preconditions{UID: new(types.UID("other"))})
			w.wantError(err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on Widget.example.org "a": the UID in the precondition (other) `+
				`does not match the UID in record (`+string(obj.UID)+`). The object might have been deleted and then recreated`)
			w.must(w.c.Delete(w.Context(), obj, client.Preconditions{UID: &obj.UID}))
		}},
		{"precondition on the resource version", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Delete(w.Context(), obj, client.Preconditions{ResourceVersion: new("1")}), 409,
				metav1.StatusReasonConflict,
				`Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2). `+
					`The object might have been modified`)
			w.must(w.c.Delete(w.Context(), obj, client.Preconditions{ResourceVersion: &obj.ResourceVersion}))
		}},
		{"precondition on the resource version fails when it no longer waits for dependents", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationForeground)))
			version := w.stored(obj).GetResourceVersion()
			err := w.c.Delete(
				w.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground),
				client.Preconditions{ResourceVersion: &version},
			)
			w.wantError(err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, `+
				`Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: , `+
				`ResourceVersion in object meta: 3`)
		}},
		{"a dry run has no effect", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			w.must(w.c.Delete(w.Context(), obj, client.DryRunAll))
			w.wantChanges(before)
		}},
		{"foreground waits for dependents", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationForeground)))
			w.equal("finalizers", []string{metav1.FinalizerDeleteDependents}, w.stored(obj).GetFinalizers())
		}},
		{"orphan releases dependents first", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
			w.equal("finalizers", []string{metav1.FinalizerOrphanDependents}, w.stored(obj).GetFinalizers())
		}},
		{"background replaces foreground", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationForeground)))
			w.must(w.c.Delete(w.Context(), obj, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			if w.stored(obj) != nil {
				w.Error("the object still exists")
			}
		}},
		{"jobs orphan their pods by default", func(w *world) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
			job.Spec.Template.Spec = newPod("").Spec
			job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			w.create(job)
			w.must(w.c.Delete(w.Context(), job))
			w.equal("finalizers", []string{metav1.FinalizerOrphanDependents}, w.stored(job).GetFinalizers())
		}},
		{"an unknown propagation policy", func(w *world) {
			w.create(configMap("a"))
			w.wantError(w.c.Delete(w.Context(), configMap("a"), client.PropagationPolicy("x")), 422, metav1.StatusReasonInvalid,
				`DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x"`)
		}},
	})
}

func TestDeletePod(t *testing.T) {
	runRules(t, []rule{
		{"sets a grace period", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			w.must(w.c.Delete(w.Context(), pod))
			got := w.stored(pod)
			w.equal("grace", int64(30), *got.GetDeletionGracePeriodSeconds())
			w.equal("deletion", metav1.Unix(start.Unix()+30, 0), *got.GetDeletionTimestamp())
			before := w.Version()
			w.must(w.c.Delete(w.Context(), pod))
			w.wantChanges(before)
		}},
		{"the grace period can be reduced", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			w.must(w.c.Delete(w.Context(), pod))
			w.now = start.Add(2 * time.Second)
			w.must(w.c.Delete(w.Context(), pod, client.GracePeriodSeconds(5)))
			got := w.stored(pod)
			w.equal("grace", int64(5), *got.GetDeletionGracePeriodSeconds())
			w.equal("deletion", metav1.Unix(start.Unix()+5, 0), *got.GetDeletionTimestamp())
		}},
		{"the grace period cannot be extended", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			w.must(w.c.Delete(w.Context(), pod, client.GracePeriodSeconds(5)))
			before := w.Version()
			w.must(w.c.Delete(w.Context(), pod, client.GracePeriodSeconds(50)))
			w.wantChanges(before)
		}},
		{"without a grace period it is marked and removed", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			before := w.Version()
			w.must(w.c.Delete(w.Context(), pod, client.GracePeriodSeconds(0)))
			w.wantChanges(before, "MODIFIED Pod a +1", "DELETED Pod a +2")
		}},
		{"that is not scheduled is removed immediately", func(w *world) {
			pod := newPod("a")
			pod.Spec.NodeName = ""
			w.create(pod)
			w.must(w.c.Delete(w.Context(), pod))
			if w.stored(pod) != nil {
				w.Error("the object still exists")
			}
		}},
		{"that has terminated is removed immediately", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			pod.Status.Phase = corev1.PodSucceeded
			w.must(w.c.Status().Update(w.Context(), pod))
			w.must(w.c.Delete(w.Context(), pod))
			if w.stored(pod) != nil {
				w.Error("the object still exists")
			}
		}},
		{"the last finalizer does not end it before its grace period", func(w *world) {
			pod := newPod("a")
			pod.Finalizers = []string{hold}
			w.create(pod)
			w.must(w.c.Delete(w.Context(), pod))
			w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(pod), pod))
			pod.Finalizers = nil
			w.must(w.c.Update(w.Context(), pod))
			if w.stored(pod) == nil {
				w.Error("the object no longer exists")
			}
			w.must(w.c.Delete(w.Context(), pod, client.GracePeriodSeconds(0)))
			if w.stored(pod) != nil {
				w.Error("the object still exists")
			}
		}},
	})
}

func TestDeleteAllOf(t *testing.T) {
	runRules(t, []rule{
		{"deletes the selected objects", func(w *world) {
			for _, name := range []string{"a", "b", "c"} {
				obj := configMap(name)
				if name == "b" {
					obj.Labels = nil
				}
				w.create(obj)
			}
			before := w.Version()
			w.must(
				w.c.DeleteAllOf(w.Context(), &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{
					"app": "web",
				}),
			)
			w.wantChanges(before, "DELETED ConfigMap a +1", "DELETED ConfigMap c +2")
		}},
		{"marks objects with finalizers", func(w *world) {
			obj := widget("a")
			obj.Finalizers = []string{hold}
			w.create(obj)
			w.must(w.c.DeleteAllOf(w.Context(), &Widget{}, client.InNamespace("default")))
			if w.stored(obj).GetDeletionTimestamp() == nil {
				w.Error("not marked")
			}
		}},
	})
}
