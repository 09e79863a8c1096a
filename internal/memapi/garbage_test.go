// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refTo returns a reference to an owner that blocks the owner's deletion.
func refTo(obj client.Object, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: map[string]string{"Widget": "example.org/v1"}[kind] + map[string]string{
			"ConfigMap": "v1", "Namespace": "v1",
		}[kind],
		Kind: kind, Name: obj.GetName(), UID: obj.GetUID(), BlockOwnerDeletion: new(true), Controller: new(true),
	}
}

// owned creates a config map with owners.
func (w *world) owned(name string, refs ...metav1.OwnerReference) *corev1.ConfigMap {
	w.Helper()
	obj := configMap(name)
	for i := range refs {
		refs[i].Controller = new(i == 0)
	}
	obj.OwnerReferences = refs
	w.create(obj)
	return obj
}

// chain creates a widget, a config map that the widget owns, and one with a finalizer that the first config map owns.
func (w *world) chain() (owner *Widget, child, last *corev1.ConfigMap) {
	w.Helper()
	owner = widget("o")
	w.create(owner)
	child = w.owned("b", refTo(owner, "Widget"))
	last = configMap("a")
	last.OwnerReferences, last.Finalizers = []metav1.OwnerReference{refTo(child, "ConfigMap")}, []string{hold}
	w.create(last)
	return owner, child, last
}

func (w *world) garbage() []string {
	var lines []string
	for _, c := range w.Garbage() {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Type, c.Kind.Kind, c.Key.Name))
	}
	return lines
}

func (w *world) wantGarbage(want ...string) {
	w.Helper()
	w.equal("garbage", want, w.garbage())
}

// collect executes all steps of the garbage collector until none is left, and returns them.
func (w *world) collect() []string {
	w.Helper()
	var lines []string
	for range 50 {
		garbage := w.Garbage()
		if len(garbage) == 0 {
			return lines
		}
		lines = append(lines, w.garbage()[0])
		w.must(w.Collect(garbage[0]))
	}
	w.Fatalf("steps remain after many rounds: %v", lines)
	return nil
}

func TestGarbage(t *testing.T) {
	foreground, orphan := client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.PropagationPolicy(metav1.DeletePropagationOrphan)
	runRules(t, []rule{
		{"an object without owners is kept", func(w *world) {
			w.create(configMap("a"))
			w.wantGarbage()
		}},
		{"an object with an owner is kept", func(w *world) {
			owner := widget("o")
			w.create(owner)
			w.owned("a", refTo(owner, "Widget"))
			w.wantGarbage()
		}},
		{"an object whose owner is missing is deleted, and its dependents", func(w *world) {
			owner := widget("o")
			w.create(owner)
			child := w.owned("b", refTo(owner, "Widget"))
			w.owned("a", refTo(child, "ConfigMap"))
			w.must(w.c.Delete(w.Context(), owner))
			w.equal("steps", []string{"delete ConfigMap b", "delete ConfigMap a"}, w.collect())
		}},
		{"an owner with another UID does not exist", func(w *world) {
			owner := widget("o")
			w.create(owner)
			w.owned("a", refTo(owner, "Widget"))
			w.must(w.c.Delete(w.Context(), owner))
			w.create(widget("o"))
			w.wantGarbage("delete ConfigMap a")
		}},
		{"an owner that is being deleted exists", func(w *world) {
			owner := widget("o")
			owner.Finalizers = []string{hold}
			w.create(owner)
			w.owned("a", refTo(owner, "Widget"))
			w.must(w.c.Delete(w.Context(), owner))
			w.wantGarbage()
		}},
		{"an owner in another namespace does not exist", func(w *world) {
			owner := widget("o")
			owner.Namespace = "kube-public"
			w.create(owner)
			w.owned("a", refTo(owner, "Widget"))
			w.wantGarbage("delete ConfigMap a")
		}},
		{"an owner of the cluster", func(w *world) {
			owner := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "o"}}
			w.create(owner)
			w.owned("a", refTo(owner, "Namespace"))
			w.wantGarbage()
		}},
		{"an owner of an unknown kind is ignored", func(w *world) {
			w.owned("a", metav1.OwnerReference{APIVersion: "example.com/v7", Kind: "Thing", Name: "o", UID: "1"})
			w.wantGarbage()
		}},
		{"an object of the cluster cannot have an owner in a namespace", func(w *world) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "1"},
			}}}
			w.create(ns)
			w.wantGarbage()
		}},
		{"a missing owner is removed if another owner exists", func(w *world) {
			owner, other := widget("o"), widget("p")
			w.create(owner)
			w.create(other)
			obj := w.owned("a", refTo(owner, "Widget"), refTo(other, "Widget"))
			w.must(w.c.Delete(w.Context(), owner))
			w.equal("steps", []string{"drop owners ConfigMap a"}, w.collect())
			w.equal("owners", obj.OwnerReferences[1:], w.stored(obj).GetOwnerReferences())
		}},
		{"foreground: dependents first, then the owner", func(w *world) {
			owner := widget("o")
			w.create(owner)
			w.owned("a", refTo(owner, "Widget"))
			w.owned("b", refTo(owner, "Widget"))
			w.must(w.c.Delete(w.Context(), owner, foreground))
			w.equal("steps", []string{"delete ConfigMap a", "delete ConfigMap b", "finish deletion Widget o"}, w.collect())
		}},
		{"foreground: grandchildren first", func(w *world) {
			owner := widget("o")
			w.create(owner)
			child := w.owned("b", refTo(owner, "Widget"))
			w.owned("a", refTo(child, "ConfigMap"))
			w.must(w.c.Delete(w.Context(), owner, foreground))
			w.equal(
				"steps",
				[]string{"delete ConfigMap b", "delete ConfigMap a", "finish deletion ConfigMap b", "finish deletion Widget o"},
				w.collect(),
			)
		}},
		{"foreground: does not wait for those that do not block", func(w *world) {
			owner := widget("o")
			w.create(owner)
			ref := refTo(owner, "Widget")
			ref.BlockOwnerDeletion = nil
			w.owned("a", ref)
			w.must(w.c.Delete(w.Context(), owner, foreground))
			w.wantGarbage("delete ConfigMap a", "finish deletion Widget o")
		}},
		{"foreground: a dependent with another owner loses this one", func(w *world) {
			owner, other := widget("o"), widget("p")
			w.create(owner)
			w.create(other)
			w.owned("a", refTo(owner, "Widget"), refTo(other, "Widget"))
			w.must(w.c.Delete(w.Context(), owner, foreground))
			w.equal("steps", []string{"drop owners ConfigMap a", "finish deletion Widget o"}, w.collect())
		}},
		{"foreground: a cycle of owners is broken", func(w *world) {
			owner := widget("o")
			w.create(owner)
			child := w.owned("a", refTo(owner, "Widget"))
			owner.OwnerReferences = []metav1.OwnerReference{refTo(child, "ConfigMap")}
			w.must(w.c.Update(w.Context(), owner))
			w.must(w.c.Delete(w.Context(), owner, foreground))
			w.equal(
				"steps",
				[]string{"unblock ConfigMap a", "delete ConfigMap a", "finish deletion Widget o", "finish deletion ConfigMap a"},
				w.collect(),
			)
		}},
		{"foreground: an object that no longer waits is treated as a cycle, too", func(w *world) {
			owner, _, last := w.chain()
			w.must(w.c.Delete(w.Context(), last, foreground))
			w.equal("steps", []string{"finish deletion ConfigMap a"}, w.collect())
			w.must(w.c.Delete(w.Context(), owner, foreground))
			w.equal("steps", []string{"unblock ConfigMap b", "delete ConfigMap b", "finish deletion Widget o"}, w.collect())
		}},
		{"orphan: a dependent that waits for its own is released", func(w *world) {
			owner, child, _ := w.chain()
			w.must(w.c.Delete(w.Context(), child, foreground))
			w.equal("steps", []string{"delete ConfigMap a"}, w.collect())
			w.must(w.c.Delete(w.Context(), owner, orphan))
			w.equal("steps", []string{"release ConfigMap b", "finish deletion Widget o"}, w.collect())
		}},
		{"orphan: dependents are released, then the owner is removed", func(w *world) {
			owner := widget("o")
			w.create(owner)
			obj := w.owned("a", refTo(owner, "Widget"))
			w.must(w.c.Delete(w.Context(), owner, orphan))
			w.equal("steps", []string{"release ConfigMap a", "finish deletion Widget o"}, w.collect())
			w.equal("owners", 0, len(w.stored(obj).GetOwnerReferences()))
		}},
		{"an object with finalizers is marked once", func(w *world) {
			obj := configMap("a")
			obj.Finalizers = []string{hold}
			obj.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "1"}}
			w.create(obj)
			w.equal("steps", []string{"delete ConfigMap a"}, w.collect())
			if w.stored(obj).GetDeletionTimestamp() == nil {
				w.Error("not marked")
			}
		}},
		{"a replaced object is not changed", func(w *world) {
			w.owned("a", metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "1"})
			garbage := w.Garbage()
			w.must(w.c.Delete(w.Context(), configMap("a")))
			w.must(w.Collect(garbage[0]))
			w.create(configMap("a"))
			w.must(w.Collect(garbage[0]))
			if w.stored(configMap("a")) == nil {
				w.Error("the other object no longer exists")
			}
		}},
	})
}

func TestNamespace(t *testing.T) {
	create := func(w *world) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		w.create(ns)
		return ns
	}
	runRules(t, []rule{
		{"some exist from the start, without events", func(w *world) {
			var list corev1.NamespaceList
			w.must(w.c.List(w.Context(), &list))
			var names []string
			for _, ns := range list.Items {
				names = append(names, ns.Name)
			}
			w.equal("names", []string{"default", "kube-node-lease", "kube-public", "kube-system"}, names)
			w.wantChanges(0)
		}},
		{"some cannot be deleted", func(w *world) {
			w.wantError(w.c.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}), 403,
				metav1.StatusReasonForbidden,
				`namespaces "default" is forbidden: this namespace may not be deleted`)
		}},
		{"terminates first", func(w *world) {
			ns := create(w)
			w.must(w.c.Delete(w.Context(), ns))
			got := w.stored(ns).(*corev1.Namespace)
			w.equal("phase", corev1.NamespaceTerminating, got.Status.Phase)
			w.equal("deletion", metav1.Unix(start.Unix(), 0), *got.DeletionTimestamp)
			before := w.Version()
			w.must(w.c.Delete(w.Context(), ns))
			w.wantChanges(before)
		}},
		{"that terminates accepts no new objects", func(w *world) {
			ns := create(w)
			w.must(w.c.Delete(w.Context(), ns))
			obj := configMap("a")
			obj.Namespace = "n"
			err := w.c.Create(w.Context(), obj)
			w.wantError(err, 403, metav1.StatusReasonForbidden,
				`configmaps "a" is forbidden: unable to create new content in namespace n because it is being terminated`)
			if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				w.Errorf("error %#v does not have the cause", err)
			}
		}},
		{"its content is deleted, pods first, and then the namespace", func(w *world) {
			ns := create(w)
			pod, obj := newPod("p"), configMap("a")
			pod.Namespace, obj.Namespace = "n", "n"
			pod.Spec.NodeName = ""
			w.create(pod)
			w.create(obj)
			w.must(w.c.Delete(w.Context(), ns))
			w.equal(
				"steps", []string{"delete content Pod p", "delete content ConfigMap a", "finish namespace Namespace n"},
				w.collect(),
			)
			if w.stored(ns) != nil {
				w.Error("the object still exists")
			}
		}},
		{"waits for finalizers of its content", func(w *world) {
			ns := create(w)
			obj := configMap("a")
			obj.Namespace, obj.Finalizers = "n", []string{hold}
			w.create(obj)
			w.must(w.c.Delete(w.Context(), ns))
			w.equal("steps", []string{"delete content ConfigMap a"}, w.collect())
			w.must(
				w.c.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))),
			)
			w.equal("steps", []string{"finish namespace Namespace n"}, w.collect())
		}},
		{"waits for its own finalizers last", func(w *world) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: []string{hold}}}
			w.create(ns)
			w.must(w.c.Delete(w.Context(), ns))
			w.equal("steps", []string{"finish namespace Namespace n"}, w.collect())
			w.must(w.c.Patch(w.Context(), ns, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
			if w.stored(ns) != nil {
				w.Error("the object still exists")
			}
		}},
	})
}
