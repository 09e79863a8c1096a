// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watch starts a watch of config maps.
func (w *world) watch(opts ...client.ListOption) watch.Interface {
	w.Helper()
	watcher, err := w.c.Watch(w.Context(), &corev1.ConfigMapList{}, opts...)
	w.must(err)
	return watcher
}

// seen returns the events of a watch that can be read without waiting.
func seen(watcher watch.Interface) (lines []string) {
	for {
		select {
		case event, open := <-watcher.ResultChan():
			if !open {
				return append(lines, "closed")
			}
			switch obj := event.Object.(type) {
			case client.Object:
				lines = append(lines, fmt.Sprintf("%s %s@%s", event.Type, obj.GetName(), obj.GetResourceVersion()))
			case *metav1.Status:
				lines = append(lines, fmt.Sprintf("%s %d %s", event.Type, obj.Code, obj.Message))
			}
		default:
			return lines
		}
	}
}

func raw(options metav1.ListOptions) client.ListOption {
	return &client.ListOptions{Raw: &options}
}

func TestWatch(t *testing.T) {
	runRules(t, []rule{
		{"reports changes", func(w *world) {
			watcher := w.watch()
			obj := configMap("a")
			w.create(obj)
			w.create(widget("a"))
			obj.Data["key"] = "other"
			w.must(w.c.Update(w.Context(), obj))
			w.must(w.c.Delete(w.Context(), obj))
			w.equal("seen", []string{"ADDED a@2", "MODIFIED a@4", "DELETED a@5"}, seen(watcher))
		}},
		{"starts with the existing objects", func(w *world) {
			w.create(configMap("b"))
			w.create(configMap("a"))
			w.equal("seen", []string{"ADDED a@3", "ADDED b@2"}, seen(w.watch()))
		}},
		{"begins after a version", func(w *world) {
			w.create(configMap("b"))
			w.create(configMap("a"))
			w.must(w.c.Delete(w.Context(), configMap("b")))
			w.equal("seen", []string{"ADDED a@3", "DELETED b@4"}, seen(w.watch(raw(metav1.ListOptions{ResourceVersion: "2"}))))
		}},
		{"reports objects that leave a selection as deleted, and those that join as added", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			watcher := w.watch(client.MatchingLabels{"app": "web"}, raw(metav1.ListOptions{ResourceVersion: "2"}))
			obj.Labels["app"] = "other"
			w.must(w.c.Update(w.Context(), obj))
			obj.Data["key"] = "unseen"
			w.must(w.c.Update(w.Context(), obj))
			obj.Labels["app"] = "web"
			w.must(w.c.Update(w.Context(), obj))
			w.equal("seen", []string{"DELETED a@3", "ADDED a@5"}, seen(watcher))
		}},
		{"of a namespace", func(w *world) {
			watcher := w.watch(client.InNamespace("kube-public"))
			w.create(configMap("a"))
			w.equal("seen", []string(nil), seen(watcher))
		}},
		{"from a compacted version", func(w *world) {
			w.create(configMap("a"))
			w.create(configMap("b"))
			w.Compact(3)
			w.equal(
				"seen", []string{"ERROR 410 too old resource version: 2 (3)", "closed"},
				seen(w.watch(raw(metav1.ListOptions{ResourceVersion: "2"}))),
			)
		}},
		{"sends bookmarks if requested", func(w *world) {
			with, without := w.watch(raw(metav1.ListOptions{AllowWatchBookmarks: true})), w.watch()
			w.create(widget("a"))
			w.Bookmark()
			w.equal("with", []string{"BOOKMARK @2"}, seen(with))
			w.equal("without", []string(nil), seen(without))
		}},
		{"a list by watching ends with a bookmark", func(w *world) {
			w.create(configMap("a"))
			watcher := w.watch(raw(metav1.ListOptions{
				AllowWatchBookmarks: true, SendInitialEvents: new(true),
				ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			}))
			w.equal("first", watch.Added, (<-watcher.ResultChan()).Type)
			last := <-watcher.ResultChan()
			w.equal("last", watch.Bookmark, last.Type)
			w.equal("mark", "true", last.Object.(client.Object).GetAnnotations()[metav1.InitialEventsAnnotationKey])
		}},
		{"a list by watching needs a match of the version", func(w *world) {
			_, err := w.c.Watch(w.Context(), &corev1.ConfigMapList{}, raw(metav1.ListOptions{SendInitialEvents: new(true)}))
			w.wantError(err, 422, metav1.StatusReasonInvalid, `ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: `+
				"Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
		}},
		{"ends with the context", func(w *world) {
			ctx, cancel := context.WithCancel(w.Context())
			watcher, err := w.c.Watch(ctx, &corev1.ConfigMapList{})
			w.must(err)
			cancel()
			if _, open := <-watcher.ResultChan(); open {
				w.Error("open")
			}
			w.create(configMap("a"))
		}},
		{"can be stopped, twice", func(w *world) {
			watcher := w.watch()
			watcher.Stop()
			watcher.Stop()
			w.create(configMap("a"))
			w.equal("seen", []string{"closed"}, seen(watcher))
		}},
		{"ends when the client does not read", func(w *world) {
			watcher := w.watch()
			obj := configMap("a")
			w.create(obj)
			for i := range 2000 {
				obj.Data["key"] = fmt.Sprint(i)
				w.must(w.c.Update(w.Context(), obj))
			}
			lines := seen(watcher)
			w.equal("last", "closed", lines[len(lines)-1])
		}},
		{"of metadata and of unstructured objects", func(w *world) {
			kind := corev1.SchemeGroupVersion.WithKind("ConfigMapList")
			partial, generic := &metav1.PartialObjectMetadataList{}, &unstructured.UnstructuredList{}
			partial.SetGroupVersionKind(kind)
			generic.SetGroupVersionKind(kind)
			w.create(configMap("a"))
			for _, list := range []client.ObjectList{partial, generic} {
				watcher, err := w.c.Watch(w.Context(), list)
				w.must(err)
				obj := (<-watcher.ResultChan()).Object
				wantKind := map[bool]string{true: "ConfigMap"}[list == client.ObjectList(generic)]
				w.equal("kind", wantKind, obj.GetObjectKind().GroupVersionKind().Kind)
				w.equal("name", "a", obj.(client.Object).GetName())
			}
		}},
	})
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	obj := configMap("a")
	w.create(obj)
	obj.Data["key"] = "other"
	w.must(w.c.Update(w.Context(), obj))
	w.must(w.c.Delete(w.Context(), obj))
	w.wantChanges(0, "ADDED ConfigMap a +2", "MODIFIED ConfigMap a +3", "DELETED ConfigMap a +4")
	w.wantChanges(3, "DELETED ConfigMap a +1")
	w.wantChanges(4)
	w.wantChanges(9)
	events := w.Events(0)
	w.equal("old of the first", nil, events[0].Old)
	w.equal("old of the second", events[0].Object, events[1].Old)
	w.equal("old of the third", events[1].Object, events[2].Old)
	w.equal("data of the first", "value", events[0].Object.(*corev1.ConfigMap).Data["key"])
}

// TestEventsNameTheirClient checks that events have the name of the client that made the change, whatever field manager
// its request names.
func TestEventsNameTheirClient(t *testing.T) {
	w := newWorld(t)
	other := w.Client("other")
	owner, owned, kept := configMap("owner"), configMap("owned"), configMap("kept")
	kept.Finalizers = []string{"example.org/hold"}
	w.must(other.Create(w.Context(), owner, client.FieldOwner("tester")))
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	w.create(owned)
	w.create(kept)
	w.must(other.Patch(w.Context(), owned, mergePatch(`{"data":{"a":"b"}}`)))
	w.must(w.c.Delete(w.Context(), owner))
	w.must(other.DeleteAllOf(w.Context(), &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingFields{
		"metadata.name": "kept",
	}))
	for _, garbage := range w.Garbage() {
		w.must(w.Collect(garbage))
	}
	w.must(w.c.Patch(w.Context(), kept, mergePatch(`{"metadata":{"finalizers":null}}`)))
	var got []string
	for _, e := range w.Events(0) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Client, e.Type, e.Key.Name))
	}
	w.equal("events", []string{
		"other ADDED owner", "tester ADDED owned", "tester ADDED kept", "other MODIFIED owned", "tester DELETED owner",
		"other MODIFIED kept", "kube-controller-manager DELETED owned", "tester DELETED kept",
	}, got)
}
