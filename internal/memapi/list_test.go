// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// names returns the names in a list of config maps.
func (w *world) names(opts ...client.ListOption) (names []string) {
	w.Helper()
	var list corev1.ConfigMapList
	w.must(w.c.List(w.Context(), &list, opts...))
	for _, item := range list.Items {
		names = append(names, item.Namespace+"/"+item.Name)
	}
	return names
}

func TestList(t *testing.T) {
	fill := func(w *world) {
		for _, name := range []string{"b", "c", "a"} {
			obj := configMap(name)
			obj.Labels = map[string]string{"name": name}
			w.create(obj)
		}
		other := configMap("a")
		other.Namespace = "kube-public"
		w.create(other)
	}
	runRules(t, []rule{
		{"is sorted by namespace and name", func(w *world) {
			fill(w)
			w.equal("names", []string{"default/a", "default/b", "default/c", "kube-public/a"}, w.names())
		}},
		{"has the version of the server", func(w *world) {
			fill(w)
			w.create(widget("z"))
			var list corev1.ConfigMapList
			w.must(w.c.List(w.Context(), &list))
			w.equal("version", fmt.Sprint(w.Version()), list.ResourceVersion)
		}},
		{"namespaces are sorted as paths", func(w *world) {
			for _, name := range []string{"n", "n-1"} {
				w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
				obj := configMap("a")
				obj.Namespace = name
				w.create(obj)
			}
			w.equal("names", []string{"n-1/a", "n/a"}, w.names())
		}},
		{"of a namespace", func(w *world) {
			fill(w)
			w.equal("names", []string{"kube-public/a"}, w.names(client.InNamespace("kube-public")))
		}},
		{"by labels", func(w *world) {
			fill(w)
			w.equal("names", []string{"default/c"}, w.names(client.MatchingLabels{"name": "c"}))
		}},
		{"by fields", func(w *world) {
			fill(w)
			w.equal("by name", []string{"default/a", "kube-public/a"}, w.names(client.MatchingFields{"metadata.name": "a"}))
			w.equal(
				"by namespace", []string{"kube-public/a"}, w.names(client.MatchingFields{"metadata.namespace": "kube-public"}),
			)
		}},
		{"by an unsupported field", func(w *world) {
			w.wantError(w.c.List(w.Context(), &corev1.ConfigMapList{}, client.MatchingFields{"data.x": "a"}), 400,
				metav1.StatusReasonBadRequest,
				`"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"`)
			w.wantError(w.c.List(w.Context(), &WidgetList{}, client.MatchingFields{"spec.size": "1"}), 400,
				metav1.StatusReasonBadRequest,
				`field label not supported: spec.size`)
		}},
		{"pods by node", func(w *world) {
			w.create(newPod("a"))
			other := newPod("b")
			other.Spec.NodeName = "other"
			w.create(other)
			var list corev1.PodList
			w.must(
				w.c.List(w.Context(), &list, client.MatchingFieldsSelector{
					Selector: fields.ParseSelectorOrDie("spec.nodeName!=node"),
				}),
			)
			w.equal("count", 1, len(list.Items))
			w.equal("name", "b", list.Items[0].Name)
		}},
		{"in pages of one version", func(w *world) {
			fill(w)
			var list corev1.ConfigMapList
			w.must(w.c.List(w.Context(), &list, client.Limit(2)))
			w.equal("remaining", int64(2), *list.RemainingItemCount)
			w.must(w.c.Delete(w.Context(), configMap("c")))
			w.create(configMap("d"))
			w.equal("next", []string{"default/c", "kube-public/a"}, w.names(client.Limit(2), client.Continue(list.Continue)))
		}},
		{"the last page may be empty", func(w *world) {
			fill(w)
			selected := client.MatchingLabels{"name": "a"}
			var list corev1.ConfigMapList
			w.must(w.c.List(w.Context(), &list, client.InNamespace("default"), selected, client.Limit(1)))
			w.equal("remaining", (*int64)(nil), list.RemainingItemCount)
			w.must(
				w.c.List(
					w.Context(), &list, client.InNamespace("default"), selected, client.Limit(1), client.Continue(list.Continue),
				),
			)
			w.equal("count", 0, len(list.Items))
			w.equal("continue", "", list.Continue)
		}},
		{"a page of a compacted version has expired", func(w *world) {
			fill(w)
			var list corev1.ConfigMapList
			w.must(w.c.List(w.Context(), &list, client.Limit(2)))
			w.create(configMap("d"))
			w.Compact(w.Version())
			w.wantError(w.c.List(w.Context(), &list, client.Limit(2), client.Continue(list.Continue)), 410,
				metav1.StatusReasonExpired,
				"The provided continue parameter is too old")
		}},
		{"at an exact version", func(w *world) {
			fill(w)
			w.must(w.c.Delete(w.Context(), configMap("c")))
			exact := &client.ListOptions{
				Raw: &metav1.ListOptions{ResourceVersion: "3", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
			}
			w.equal("names", []string{"default/b", "default/c"}, w.names(exact))
		}},
		{"an unknown match of the version", func(w *world) {
			unknown := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: "junk"}}
			w.wantError(w.c.List(w.Context(), &corev1.ConfigMapList{}, unknown), 422, metav1.StatusReasonInvalid,
				`ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "junk": `)
		}},
		{"at a future version", func(w *world) {
			late := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "99"}}
			w.wantError(
				w.c.List(w.Context(), &corev1.ConfigMapList{}, late), 504, metav1.StatusReasonTimeout,
				"Timeout: Too large resource version: 99, current: 1",
			)
		}},
		{"items of custom kinds have their kind, others do not", func(w *world) {
			w.create(widget("a"))
			w.create(configMap("a"))
			var widgetList WidgetList
			w.must(w.c.List(w.Context(), &widgetList))
			w.equal("widget", metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Widget"}, widgetList.Items[0].TypeMeta)
			var list corev1.ConfigMapList
			w.must(w.c.List(w.Context(), &list))
			w.equal("config map", metav1.TypeMeta{}, list.Items[0].TypeMeta)
		}},
		{"replaces the items of the list", func(w *world) {
			list := corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap("x")}}
			list.Continue = "x"
			w.must(w.c.List(w.Context(), &list))
			w.equal("list", corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, list)
		}},
	})
}

func TestGeneric(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	content := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"namespace": "default", "name": "a",
			}, "data": map[string]any{"key": "value"},
		}}
	}
	runRules(t, []rule{
		{"unstructured objects are created, read, updated and deleted", func(w *world) {
			obj := content()
			w.create(obj)
			w.equal(
				"stored", map[string]string{"key": "value"}, w.Get(kind, client.ObjectKeyFromObject(obj)).(*corev1.ConfigMap).Data,
			)
			got := &unstructured.Unstructured{}
			got.SetGroupVersionKind(kind)
			w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), got))
			w.equal("read", obj, got)
			w.must(unstructured.SetNestedField(got.Object, "other", "data", "key"))
			w.must(w.c.Update(w.Context(), got))
			w.equal("version", "3", got.GetResourceVersion())
			w.must(w.c.Delete(w.Context(), got))
		}},
		{"unstructured objects of a wrong type", func(w *world) {
			obj := content()
			obj.Object["data"] = int64(7)
			w.wantError(
				w.c.Create(w.Context(), obj), 400, metav1.StatusReasonBadRequest,
				`ConfigMap in version "v1" cannot be handled as a ConfigMap: `,
			)
		}},
		{"unstructured lists", func(w *world) {
			w.create(content())
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind("ConfigMapList"))
			w.must(w.c.List(w.Context(), list))
			w.equal("count", 1, len(list.Items))
			w.equal("kind", "ConfigMap", list.Items[0].GetKind())
			w.equal("kind of the list", "ConfigMapList", list.GetKind())
			w.equal("version", "2", list.GetResourceVersion())
		}},
		{"metadata", func(w *world) {
			w.create(configMap("a"))
			obj := &metav1.PartialObjectMetadata{}
			obj.SetGroupVersionKind(kind)
			w.must(w.c.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, obj))
			w.equal("kind", kind, obj.GroupVersionKind())
			w.equal("labels", map[string]string{"app": "web"}, obj.Labels)
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind("ConfigMapList"))
			w.must(w.c.List(w.Context(), list))
			w.equal("kind in a list", kind, list.Items[0].GroupVersionKind())
			w.must(w.c.Delete(w.Context(), obj))
		}},
		{"metadata cannot be created", func(w *world) {
			if err := w.c.Create(w.Context(), &metav1.PartialObjectMetadata{}); err == nil ||
				err.Error() != "cannot create using only metadata" {
				w.Errorf("error %v", err)
			}
		}},
		{"kinds that are not served", func(w *world) {
			obj := &unstructured.Unstructured{}
			obj.SetAPIVersion("example.com/v9")
			obj.SetKind("Thing")
			if err := w.c.Get(w.Context(), client.ObjectKey{Name: "a"}, obj); err == nil ||
				err.Error() != `no matches for kind "Thing" in version "example.com/v9"` {
				w.Errorf("error %v", err)
			}
		}},
		{"kinds, scopes and the mapper", func(w *world) {
			gvk, err := w.c.GroupVersionKindFor(&Widget{})
			w.must(err)
			w.equal("kind", widgets.WithKind("Widget"), gvk)
			namespaced, err := w.c.IsObjectNamespaced(&corev1.Namespace{})
			w.must(err)
			w.equal("namespaced", false, namespaced)
			w.create(configMap("a"))
			w.equal("kinds", 2, len(w.Kinds()))
		}},
	})
}
