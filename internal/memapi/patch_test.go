// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

func jsonPatch(text string) client.Patch { return client.RawPatch(types.JSONPatchType, []byte(text)) }

func strategicPatch(text string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(text))
}

func TestPatch(t *testing.T) {
	runRules(t, []rule{
		{"merge: changes the given fields", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"data":{"key":null,"other":"1"},"metadata":{"labels":{"x":"y"}}}`)))
			w.equal("data", map[string]string{"other": "1"}, obj.Data)
			w.equal("labels", map[string]string{"app": "web", "x": "y"}, obj.Labels)
			w.equal("version", "3", obj.ResourceVersion)
		}},
		{"merge: lists are replaced", func(w *world) {
			obj := widget("a")
			obj.Spec.Tags = []string{"a", "b"}
			w.create(obj)
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"spec":{"tags":["c"]}}`)))
			w.equal("tags", []string{"c"}, obj.Spec.Tags)
			w.equal("generation", int64(2), obj.Generation)
		}},
		{"merge: of the difference to an older object, without a lock", func(w *world) {
			obj := widget("a")
			w.create(obj)
			old := obj.DeepCopyObject().(*Widget)
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"spec":{"size":7}}`)))
			mine := old.DeepCopyObject().(*Widget)
			mine.Spec.Tags = []string{"x"}
			w.must(w.c.Patch(w.Context(), mine, client.MergeFrom(old)))
			w.equal("spec", WidgetSpec{Size: 7, Tags: []string{"x"}}, mine.Spec)
		}},
		{"merge: of the difference to an older object, with a lock", func(w *world) {
			obj := widget("a")
			w.create(obj)
			old := obj.DeepCopyObject().(*Widget)
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"spec":{"size":7}}`)))
			mine := old.DeepCopyObject().(*Widget)
			mine.Spec.Tags = []string{"x"}
			w.wantError(w.c.Patch(w.Context(), mine, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{})),
				409, metav1.StatusReasonConflict,
				`Operation cannot be fulfilled on widgets.example.org "a": `+stale)
		}},
		{"merge: changes nothing", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"data":{"key":"value"}}`)))
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{}`)))
			w.wantChanges(before)
		}},
		{"merge: does not touch the status", func(w *world) {
			obj := widget("a")
			w.create(obj)
			before := w.Version()
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"status":{"ready":true}}`)))
			w.wantChanges(before)
		}},
		{"merge: another name", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"metadata":{"name":"b"}}`)), 400, metav1.StatusReasonBadRequest,
				"the name of the object (b) does not match the name on the URL (a)")
		}},
		{"merge: another namespace", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"metadata":{"namespace":"b"}}`)), 400,
				metav1.StatusReasonBadRequest,
				"the namespace of the provided object does not match the namespace sent on the request")
		}},
		{"merge: another kind", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"kind":"ServiceAccount"}`)), 422, metav1.StatusReasonInvalid,
				` "" is invalid: patch: Invalid value: `)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"apiVersion":null}`)), 400, metav1.StatusReasonBadRequest,
				"the name of the object (a based on URL) was undeterminable: name must be provided")
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"kind":null}`)))
		}},
		{"merge: another kind of a custom object", func(w *world) {
			obj := widget("a")
			w.create(obj)
			before := w.Version()
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"kind":"Gadget"}`)), 422, metav1.StatusReasonInvalid,
				`Gadget.example.org "a" is invalid: kind: Invalid value: "Gadget": must be Widget`)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"apiVersion":"v1"}`)), 422, metav1.StatusReasonInvalid,
				`Widget "a" is invalid: apiVersion: Invalid value: "v1": must be example.org/v1`)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"kind":null}`)), 422, metav1.StatusReasonInvalid,
				` "" is invalid: patch: Invalid value: `)
			w.wantChanges(before)
		}},
		{"JSON: another kind", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, jsonPatch(`[{"op":"replace","path":"/apiVersion","value":"v7"}]`)), 422,
				metav1.StatusReasonInvalid, ` "" is invalid: patch: Invalid value: `)
		}},
		{"strategic: the kind is ignored", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Patch(w.Context(), obj, strategicPatch(`{"kind":"Secret","apiVersion":"v7"}`)))
		}},
		{"an unknown type, of an object that does not exist", func(w *world) {
			w.wantError(w.c.Patch(w.Context(), configMap("a"), client.RawPatch("text/plain", []byte(`{}`))), 415,
				metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type")
		}},
		{"merge: another UID", func(w *world) {
			obj := widget("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"metadata":{"uid":"b"}}`)), 422, metav1.StatusReasonInvalid,
				`Widget.example.org "a" is invalid: metadata.uid: Invalid value: "b": field is immutable`)
		}},
		{"merge: a custom kind without a resource version is refused", func(w *world) {
			obj := widget("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{"metadata":{"resourceVersion":null}}`)), 422,
				metav1.StatusReasonInvalid,
				`widgets.example.org "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
		}},
		{"merge: no JSON", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`x`)), 400, metav1.StatusReasonBadRequest, "")
		}},
		{"merge: wrong type", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(
				w.c.Patch(w.Context(), obj, mergePatch(`{"data":7}`)), 422, metav1.StatusReasonInvalid,
				` "" is invalid: patch: Invalid value`,
			)
		}},
		{"of a missing object", func(w *world) {
			w.wantError(
				w.c.Patch(w.Context(), configMap("a"), mergePatch(`{}`)), 404, metav1.StatusReasonNotFound,
				`configmaps "a" not found`,
			)
		}},
		{"JSON: adds, tests and removes", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.must(w.c.Patch(w.Context(), obj, jsonPatch(`[
				{"op":"test","path":"/apiVersion","value":"v1"}, {"op":"add","path":"/data/x","value":"1"}, {"op":"remove","path":"/data/key"}]`)))
			w.equal("data", map[string]string{"x": "1"}, obj.Data)
		}},
		{"JSON: a test that fails", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, jsonPatch(`[{"op":"test","path":"/data/key","value":"x"}]`)), 422,
				metav1.StatusReasonInvalid,
				"the server rejected our request due to an error in our request")
		}},
		{"JSON: no patch", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, jsonPatch(`{}`)), 400, metav1.StatusReasonBadRequest, "")
		}},
		{"strategic: merges lists by key", func(w *world) {
			pod := newPod("a")
			w.create(pod)
			w.must(w.c.Patch(w.Context(), pod, strategicPatch(`{"spec":{"containers":[{"name":"main","image":"other"}]}}`)))
			w.equal("containers", 1, len(pod.Spec.Containers))
			w.equal("image", "other", pod.Spec.Containers[0].Image)
		}},
		{"strategic: is not for custom kinds", func(w *world) {
			obj := widget("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, strategicPatch(`{}`)), 415, metav1.StatusReasonUnsupportedMediaType,
				"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "+
					"application/merge-patch+json, application/apply-patch+yaml")
		}},
		{"force is for apply", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			w.wantError(w.c.Patch(w.Context(), obj, mergePatch(`{}`), client.ForceOwnership), 422, metav1.StatusReasonInvalid,
				`PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch`)
		}},
		{"a dry run has no effect", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			before := w.Version()
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"data":{"x":"1"}}`), client.DryRunAll))
			w.equal("data", "1", obj.Data["x"])
			w.wantChanges(before)
		}},
		{"only of metadata", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
			meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			w.must(w.c.Patch(w.Context(), meta, mergePatch(`{"metadata":{"labels":{"x":"y"}}}`)))
			w.equal("labels", map[string]string{"app": "web", "x": "y"}, meta.Labels)
			w.equal("kind", "ConfigMap", meta.Kind)
			w.equal("data", obj.Data, w.stored(obj).(*corev1.ConfigMap).Data)
		}},
	})
}
