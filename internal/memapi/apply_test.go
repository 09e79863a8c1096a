// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

func applied(data map[string]string) *corev1ac.ConfigMapApplyConfiguration {
	return corev1ac.ConfigMap("a", "default").WithData(data)
}

// managers lists the field managers of an object with the fields they own.
func managers(obj client.Object) map[string]metav1.ManagedFieldsOperationType {
	found := map[string]metav1.ManagedFieldsOperationType{}
	for _, entry := range obj.GetManagedFields() {
		found[entry.Manager+entry.Subresource] = entry.Operation
	}
	return found
}

func TestApply(t *testing.T) {
	alice, bob := client.FieldOwner("alice"), client.FieldOwner("bob")
	runRules(t, []rule{
		{"creates an object", func(w *world) {
			before := w.Version()
			config := applied(map[string]string{"x": "1"})
			w.must(w.c.Apply(w.Context(), config, alice))
			w.wantChanges(before, "ADDED ConfigMap a +1")
			got := w.stored(configMap("a")).(*corev1.ConfigMap)
			w.equal("data", map[string]string{"x": "1"}, got.Data)
			w.equal("kind", metav1.TypeMeta{}, got.TypeMeta)
			w.equal("answer", string(got.UID), string(*config.UID))
			w.equal("managers", map[string]metav1.ManagedFieldsOperationType{"alice": "Apply"}, managers(got))
		}},
		{"sets applied fields and removes those applied before", func(w *world) {
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "1", "y": "1"}), alice))
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"y": "2"}), alice))
			w.equal("data", map[string]string{"y": "2"}, w.stored(configMap("a")).(*corev1.ConfigMap).Data)
		}},
		{"that changes nothing has no effect", func(w *world) {
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "1"}), alice))
			before := w.Version()
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "1"}), alice))
			w.wantChanges(before)
		}},
		{"conflicts with other managers, unless it is forced", func(w *world) {
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "1"}), alice))
			w.wantError(w.c.Apply(w.Context(), applied(map[string]string{"x": "2"}), bob), 409, metav1.StatusReasonConflict,
				`Apply failed with 1 conflict: conflict with "alice": .data.x`)
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "2"}), bob, client.ForceOwnership))
		}},
		{"needs a manager", func(w *world) {
			w.wantError(w.c.Apply(w.Context(), applied(nil)), 422, metav1.StatusReasonInvalid,
				`PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch`)
		}},
		{"keeps the managers of earlier writes", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			obj.Data["other"] = "1"
			w.must(w.c.Update(w.Context(), obj, bob))
			w.equal("managers before", 0, len(w.stored(obj).GetManagedFields()))
			w.wantError(w.c.Apply(w.Context(), applied(map[string]string{"other": "2"}), alice), 409,
				metav1.StatusReasonConflict,
				`Apply failed with 1 conflict: conflict with "bob" using v1: .data.other`)
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "1"}), alice))
			w.equal(
				"managers", map[string]metav1.ManagedFieldsOperationType{"tester": "Update", "bob": "Update", "alice": "Apply"},
				managers(w.stored(obj)),
			)
			w.equal("data", map[string]string{"key": "value", "other": "1", "x": "1"}, w.stored(obj).(*corev1.ConfigMap).Data)
		}},
		{"tracks the managers of later writes", func(w *world) {
			w.must(w.c.Apply(w.Context(), applied(map[string]string{"x": "1"}), alice))
			obj := configMap("a")
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"data":{"y":"1"}}`), bob))
			w.equal("managers", map[string]metav1.ManagedFieldsOperationType{"bob": "Update", "alice": "Apply"}, managers(obj))
		}},
		{"as a patch", func(w *world) {
			obj := configMap("a")
			obj.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			w.must(w.c.Patch(w.Context(), obj, client.Apply, alice)) //nolint:staticcheck // deprecated, but still supported
			w.equal("version", "2", obj.ResourceVersion)
		}},
		{"of unstructured content", func(w *world) {
			content := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
					"namespace": "default", "name": "a",
				}, "data": map[string]any{"x": "1"},
			}}
			w.must(w.c.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(content), alice))
			w.equal("version", "2", content.GetResourceVersion())
		}},
		{"a dry run has no effect", func(w *world) {
			before := w.Version()
			w.must(w.c.Apply(w.Context(), applied(nil), alice, client.DryRunAll))
			w.wantChanges(before)
		}},
		{"of a status", func(w *world) {
			obj := widget("a")
			w.create(obj)
			patch := client.RawPatch(
				types.ApplyYAMLPatchType,
				[]byte("{apiVersion: example.org/v1, kind: Widget, status: {ready: true}, spec: {size: 9}}"),
			)
			w.must(w.c.Status().Patch(w.Context(), obj, patch, alice))
			w.equal("status", WidgetStatus{Ready: true}, obj.Status)
			w.equal("spec", WidgetSpec{Size: 1}, obj.Spec)
			w.equal(
				"managers", map[string]metav1.ManagedFieldsOperationType{"tester": "Update", "alicestatus": "Apply"}, managers(obj),
			)
		}},
		{"of the status of a missing object", func(w *world) {
			patch := client.RawPatch(types.ApplyYAMLPatchType, []byte("{apiVersion: example.org/v1, kind: Widget}"))
			w.wantError(
				w.c.Status().Patch(w.Context(), widget("a"), patch, alice), 404, metav1.StatusReasonNotFound,
				`widgets.example.org "a" not found`,
			)
		}},
		{"of a status that an update does not change", func(w *world) {
			obj := widget("a")
			w.create(obj)
			patch := client.RawPatch(
				types.ApplyYAMLPatchType, []byte("{apiVersion: example.org/v1, kind: Widget, status: {ready: true}}"),
			)
			w.must(w.c.Status().Patch(w.Context(), obj, patch, alice))
			before := w.Version()
			w.must(w.c.Status().Update(w.Context(), obj, alice))
			w.wantChanges(before)
		}},
		{"keeps the manager of an empty status", func(w *world) {
			obj := widget("a")
			w.create(obj)
			w.must(w.c.Status().Patch(w.Context(), obj, mergePatch(`{"status":{"ready":null}}`), bob))
			w.must(
				w.c.Patch(
					w.Context(), obj, client.RawPatch(types.ApplyYAMLPatchType, []byte("{apiVersion: example.org/v1, kind: Widget}")),
					alice,
				),
			)
			w.equal(
				"managers", map[string]metav1.ManagedFieldsOperationType{"tester": "Update", "bobstatus": "Update"}, managers(obj),
			)
		}},
		{"fields that the server adds to an update have no manager", func(w *world) {
			obj := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}
			w.create(obj)
			w.must(w.c.Patch(w.Context(), obj, mergePatch(`{"spec":{"type":"NodePort"}}`), bob))
			if obj.Spec.Ports[0].NodePort == 0 {
				w.Error("the service has no node port")
			}
			w.must(w.c.Apply(w.Context(), corev1ac.Service("a", "default"), alice))
			for _, entry := range w.stored(obj).GetManagedFields() {
				if strings.Contains(entry.FieldsV1.GetRawString(), "nodePort") {
					w.Errorf("%s manages the node port: %s", entry.Manager, entry.FieldsV1.GetRawString())
				}
			}
		}},
		{"of content that does not fit", func(w *world) {
			patch := client.RawPatch(
				types.ApplyYAMLPatchType,
				[]byte("{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {size: big}}"),
			)
			w.wantError(
				w.c.Patch(w.Context(), widget("a"), patch, alice), 400, metav1.StatusReasonBadRequest,
				`Widget in version "v1" cannot be handled as a Widget`,
			)
			obj := widget("a")
			obj.Namespace = "absent"
			w.wantError(
				w.c.Patch(w.Context(), obj, patch, alice), 404, metav1.StatusReasonNotFound, `namespaces "absent" not found`,
			)
		}},
		{"of another UID", func(w *world) {
			config := applied(nil).WithUID("other")
			w.wantError(w.c.Apply(w.Context(), config, alice), 409, metav1.StatusReasonConflict,
				`Operation cannot be fulfilled on configmaps "a": uid mismatch: the provided object specified uid other, and no existing object was found`)
		}},
		{"is not served without an applier", func(w *world) {
			c := memapi.New(memapi.Options{Registry: registry()}).Client("tester")
			w.wantError(
				c.Apply(w.Context(), applied(nil), alice), 415, metav1.StatusReasonUnsupportedMediaType,
				"415: Unsupported Media Type",
			)
		}},
		{"another kind than that of the object", func(w *world) {
			w.wantError(
				w.c.Patch(w.Context(), configMap("a"), client.RawPatch(types.ApplyYAMLPatchType, []byte(
					"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: default}}",
				)), client.FieldOwner("alice")), 400, metav1.StatusReasonBadRequest, "invalid object type: /v1, Kind=Secret",
			)
		}},
	})
}
