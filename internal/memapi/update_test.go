// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const stale = "the object has been modified; please apply your changes to the latest version and try again"

func TestUpdate(t *testing.T) {
	runRules(t, []rule{
		{"is the next version", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			obj.Data["key"] = "other"
			w.must(w.c.Update(w.Context(), obj))
			w.equal("version", "3", obj.ResourceVersion)
			w.wantChanges(before, "MODIFIED ConfigMap a +1")
		}},
		{"that changes nothing has no effect", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			w.must(w.c.Update(w.Context(), obj))
			w.equal("version", "2", obj.ResourceVersion)
			w.wantChanges(before)
		}},
		{"by an empty list, which is not encoded, changes nothing", func(w *world) {
			obj := widget("a")
			w.create(obj)
			before := w.Version()
			obj.Spec.Tags, obj.Labels = []string{}, map[string]string{}
			w.must(w.c.Update(w.Context(), obj))
			w.wantChanges(before)
		}},
		{"that removes a field without another manager is a new version, once", func(w *world) {
			obj := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{{Port: 80}},
			}}
			sent := obj.DeepCopy()
			sent.Spec.ClusterIP = ""
			w.create(obj)
			before := w.Version()
			w.must(w.c.Update(w.Context(), sent.DeepCopy()))
			w.must(w.c.Update(w.Context(), sent.DeepCopy()))
			w.equal("address", corev1.ClusterIPNone, w.stored(obj).(*corev1.Service).Spec.ClusterIP)
			w.wantChanges(before, "MODIFIED Service a +1")
		}},
		{"by empty data changes an immutable field, unless the encoding drops it", func(w *world) {
			obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Immutable: new(true)}
			w.create(obj)
			obj.Data = map[string][]byte{}
			w.must(w.c.Update(w.Context(), obj))
			w.wantError(w.c.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":null}}`))), 422,
				metav1.StatusReasonInvalid,
				`Secret "a" is invalid: data: Forbidden: field is immutable when `+"`immutable` is set")
			w.must(
				w.c.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"x"}}}`))),
			)
		}},
		{"from an older version conflicts", func(w *world) {
			obj := widget("a")
			w.create(obj)
			old := obj.DeepCopyObject().(*Widget)
			obj.Spec.Size = 2
			w.must(w.c.Update(w.Context(), obj))
			old.Spec.Size = 3
			before := w.Version()
			err := w.c.Update(w.Context(), old)
			w.wantError(
				err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.org "a": `+stale,
			)
			w.wantChanges(before)
		}},
		{"of a custom kind needs a resource version", func(w *world) {
			w.create(widget("a"))
			w.wantError(w.c.Update(w.Context(), widget("a")), 422, metav1.StatusReasonInvalid,
				`widgets.example.org "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
		}},
		{"of other kinds needs none", func(w *world) {
			w.create(configMap("a"))
			obj := configMap("a")
			obj.Data["key"] = "other"
			w.must(w.c.Update(w.Context(), obj))
			w.equal("version", "3", obj.ResourceVersion)
		}},
		{"of a missing object", func(w *world) {
			w.wantError(w.c.Update(w.Context(), configMap("a")), 404, metav1.StatusReasonNotFound, `configmaps "a" not found`)
		}},
		{"of a missing object creates it, if its kind allows that", func(w *world) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "77"}}
			w.must(w.c.Update(w.Context(), lease))
			w.equal("version", "2", lease.ResourceVersion)
		}},
		{"of another object with the same name", func(w *world) {
			w.create(configMap("a"))
			obj := configMap("a")
			obj.UID = "other"
			w.wantError(w.c.Update(w.Context(), obj), 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on configmaps "a": StorageError: `+
				`invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, `+
				`UID in object meta: `+string(w.stored(configMap("a")).GetUID()))
		}},
		{"counts a generation when the desired state changes", func(w *world) {
			obj := widget("a")
			w.create(obj)
			obj.Labels = map[string]string{"a": "b"}
			obj.Generation = 77
			w.must(w.c.Update(w.Context(), obj))
			w.equal("generation after a label", int64(1), obj.Generation)
			obj.Spec.Size = 2
			w.must(w.c.Update(w.Context(), obj))
			w.equal("generation after the spec", int64(2), obj.Generation)
		}},
		{"keeps the status", func(w *world) {
			obj := widget("a")
			w.create(obj)
			obj.Status.Ready = true
			w.must(w.c.Update(w.Context(), obj))
			w.equal("answer", WidgetStatus{}, obj.Status)
			w.equal("version", "2", obj.ResourceVersion)
		}},
		{"keeps the fields of the server", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			want := obj.DeepCopy()
			obj.CreationTimestamp, obj.UID = metav1.Now(), ""
			w.must(w.c.Update(w.Context(), obj))
			w.equal("answer", want, obj)
		}},
		{"cannot set a deletion timestamp", func(w *world) {
			obj := widget("a")
			w.create(obj)
			obj.DeletionTimestamp = new(metav1.Unix(start.Unix(), 0))
			w.wantError(
				w.c.Update(w.Context(), obj), 422, metav1.StatusReasonInvalid,
				`Widget.example.org "a" is invalid: metadata.deletionTimestamp: Invalid value`,
			)
		}},
		{"cannot drop a deletion timestamp", func(w *world) {
			obj := widget("a")
			obj.Finalizers = []string{"example.org/hold"}
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj))
			w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
			want := *obj.DeletionTimestamp
			obj.DeletionTimestamp, obj.DeletionGracePeriodSeconds = nil, nil
			obj.Labels = map[string]string{"a": "b"}
			w.must(w.c.Update(w.Context(), obj))
			w.equal("deletion", want, *obj.DeletionTimestamp)
			w.equal("grace", int64(0), *obj.DeletionGracePeriodSeconds)
		}},
		{"a dry run has no effect", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			obj.Data["key"] = "other"
			w.must(w.c.Update(w.Context(), obj, client.DryRunAll))
			w.equal("answer", "other", obj.Data["key"])
			w.wantChanges(before)
		}},
		{"a typed object keeps the kind it has", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			obj.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			w.must(w.c.Update(w.Context(), obj))
			w.equal("kind", metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, obj.TypeMeta)
		}},
		{"a failed update does not change the caller's object", func(w *world) {
			obj := widget("a")
			w.create(obj)
			obj.ResourceVersion, obj.Spec.Size = "1", 5
			want := obj.DeepCopyObject()
			if err := w.c.Update(w.Context(), obj); err == nil {
				w.Fatal("no error")
			}
			w.equal("object", want, any(obj))
		}},
		{"only of metadata", func(w *world) {
			if err := w.c.Update(w.Context(), &metav1.PartialObjectMetadata{}); err == nil ||
				err.Error() != "cannot update using only metadata -- did you mean to patch?" {
				w.Errorf("error %v", err)
			}
		}},
		{"a resource version that is not a number", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			obj.ResourceVersion = "x"
			w.wantError(w.c.Update(w.Context(), obj), 500, "", "strconv.")
		}},
	})
}

func TestStatus(t *testing.T) {
	runRules(t, []rule{
		{"only the status is written", func(w *world) {
			obj := widget("a")
			w.create(obj)
			obj.Spec.Size, obj.Labels, obj.Status.Ready = 5, map[string]string{"a": "b"}, true
			w.must(w.c.Status().Update(w.Context(), obj))
			w.equal("spec", WidgetSpec{Size: 1}, obj.Spec)
			w.equal("labels", map[string]string(nil), obj.Labels)
			w.equal("status", WidgetStatus{Ready: true}, obj.Status)
			w.equal("generation", int64(1), obj.Generation)
		}},
		{"needs the current version", func(w *world) {
			obj := widget("a")
			w.create(obj)
			old := obj.DeepCopyObject().(*Widget)
			obj.Spec.Size = 2
			w.must(w.c.Update(w.Context(), obj))
			old.Status.Ready = true
			w.wantError(
				w.c.Status().Update(w.Context(), old), 409, metav1.StatusReasonConflict,
				`Operation cannot be fulfilled on widgets.example.org "a": `+stale,
			)
		}},
		{"can be patched", func(w *world) {
			obj := widget("a")
			w.create(obj)
			old := obj.DeepCopyObject().(*Widget)
			obj.Status.Ready, obj.Spec.Size = true, 3
			w.must(w.c.Status().Patch(w.Context(), obj, client.MergeFrom(old)))
			w.equal("status", WidgetStatus{Ready: true}, obj.Status)
			w.equal("spec", WidgetSpec{Size: 1}, obj.Spec)
		}},
		{"that is the same has no effect", func(w *world) {
			obj := widget("a")
			w.create(obj)
			obj.Status.Ready = true
			w.must(w.c.Status().Update(w.Context(), obj))
			before := w.Version()
			w.must(w.c.Status().Update(w.Context(), obj))
			w.wantChanges(before)
		}},
		{"an empty status differs from none", func(w *world) {
			obj, content := widget("a"), &unstructured.Unstructured{}
			content.SetGroupVersionKind(widgets.WithKind("Widget"))
			w.create(obj)
			w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), content))
			w.equal("status", nil, content.Object["status"])
			before := w.Version()
			w.must(w.c.Status().Update(w.Context(), obj))
			w.must(w.c.Status().Update(w.Context(), obj))
			w.wantChanges(before, "MODIFIED Widget a +1")
			w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), content))
			w.equal("status", any(map[string]any{}), content.Object["status"])
			content.SetLabels(map[string]string{"a": "b"})
			w.must(w.c.Update(w.Context(), content))
			w.equal("status after an update of the rest", any(map[string]any{}), content.Object["status"])
		}},
		{"can be written as another body", func(w *world) {
			obj := widget("a")
			w.create(obj)
			body := &Widget{
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: obj.ResourceVersion}, Status: WidgetStatus{Ready: true},
			}
			w.must(w.c.Status().Update(w.Context(), obj, client.WithSubResourceBody(body)))
			w.equal("status", true, w.stored(obj).(*Widget).Status.Ready)
			w.equal("body", "3", body.ResourceVersion)
		}},
		{"of a kind that has none", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(
				w.c.Status().Update(w.Context(), obj), 404, metav1.StatusReasonNotFound,
				"the server could not find the requested resource",
			)
		}},
		{"of a missing object", func(w *world) {
			w.wantError(
				w.c.Status().Update(w.Context(), widget("a")), 404, metav1.StatusReasonNotFound,
				`widgets.example.org "a" not found`,
			)
		}},
		{"can be read", func(w *world) {
			obj := widget("a")
			w.create(obj)
			var got Widget
			w.must(w.c.SubResource("status").Get(w.Context(), obj, &got))
			w.equal("size", 1, got.Spec.Size)
		}},
		{"of a pod", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			pod.Status.Phase = corev1.PodRunning
			w.must(w.c.Status().Update(w.Context(), pod))
			w.equal("phase", corev1.PodRunning, w.stored(pod).(*corev1.Pod).Status.Phase)
		}},
	})
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			NodeName: "node", TerminationGracePeriodSeconds: new(int64(30)),
			Containers: []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
}
