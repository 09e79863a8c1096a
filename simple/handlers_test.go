// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

var configMapKind = resource.Kind{
	Schema: resource.NewSimpleSchema(
		"", "v1", &corev1.ConfigMap{}, &corev1.ConfigMapList{}, resource.WithKind("ConfigMap"),
	),
}

func newConfigMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func TestManagedKindIsOpinionated(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("opinionated")
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: calls.watcher()}}
	e.start(config)
	widget := newWidget("it", "one")
	e.Add(widget)
	e.Eventually(func() error { return calls.has("add it") })
	e.patch(widget, `{"metadata":{"labels":{"a":"b"}}}`)
	e.patch(widget, `{"spec":{"title":"two"}}`)
	e.Eventually(func() error { return calls.has("update it from one to two") })
	e.observed(widget)
	if want := []string{group + "/opinionated-widgets"}; !slices.Equal(widget.Finalizers, want) {
		t.Errorf("finalizers = %q, want %q", widget.Finalizers, want)
	}
	e.Must(e.Delete(e.Context(), widget))
	e.WaitForDeletion(widget)
	if diff := cmp.Diff([]string{"add it", "update it from one to two", "delete it"}, calls.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// observed waits until the status has the generation of a widget.
func (e *env) observed(widget *Widget) {
	e.Helper()
	e.Eventually(func() error {
		e.Must(e.Read(widget))
		if widget.Status.ObservedGeneration != widget.Generation {
			return fmt.Errorf("generation %d is observed, not %d", widget.Status.ObservedGeneration, widget.Generation)
		}
		return nil
	})
}

// Changes during the downtime of the app are handled, also by a watcher without SyncFunc.
func TestWeaknessB7_NoSyncFuncIsTheAddFunc(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("synced")
	watcher := calls.watcher()
	watcher.AddFunc = func(_ context.Context, object resource.Object) error {
		calls.add("add %s %s", object.GetName(), title(object))
		return nil
	}
	config.ManagedKinds = []simple.AppManagedKind{{Kind: widgetKind, Watcher: watcher}}
	stop := e.start(config)
	changes, goes := newWidget("changes", "one"), newWidget("goes", "one")
	e.Add(changes)
	e.Add(goes)
	e.observed(changes)
	e.observed(goes)
	stop()
	e.patch(changes, `{"spec":{"title":"two"}}`)
	e.Must(e.Delete(e.Context(), goes))
	e.start(config)
	e.WaitForDeletion(goes)
	e.Eventually(func() error { return calls.has("add changes two", "delete goes") })
}

// A finalizer of a former name is replaced, so that it does not block a deletion.
func TestWeaknessB9_RenamedFinalizer(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("renamed")
	options := simple.ReconcileOptions{Finalizer: "old.example.com/widgets"}
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Watcher: &simple.Watcher{}, ReconcileOptions: options},
	}
	stop := e.start(config)
	widget, goes := newWidget("it", "one"), newWidget("goes", "one")
	e.Add(widget)
	e.Add(goes)
	e.observed(widget)
	e.observed(goes)
	stop()
	e.Must(e.Delete(e.Context(), goes))

	options = simple.ReconcileOptions{FinalizerAliases: []string{options.Finalizer}}
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Reconciler: calls.reconciler(), ReconcileOptions: options},
	}
	e.start(config)
	e.WaitForDeletion(goes)
	e.Eventually(func() error { return calls.has("resynced it", "deleted goes") })
	e.Must(e.Read(widget))
	if want := []string{group + "/renamed-widgets"}; !slices.Equal(widget.Finalizers, want) {
		t.Errorf("finalizers = %q, want %q", widget.Finalizers, want)
	}
	e.Must(e.Delete(e.Context(), widget))
	e.WaitForDeletion(widget)
}

// The settings of a kind override the settings of the app.
func TestWeaknessD10_SettingsOfAKind(t *testing.T) {
	e, calls := newEnv(t), &record{}
	failing := &simple.Reconciler{ReconcileFunc: func(
		_ context.Context, req operator.ReconcileRequest,
	) (operator.ReconcileResult, error) {
		calls.add("%T %s", req.Object, req.Object.GetName())
		return operator.ReconcileResult{}, errOnPurpose
	}}
	exhausted := func(_ context.Context, object resource.Object, err error) {
		calls.add("%s: %v after %d calls", object.GetName(), err, len(calls.all()))
	}
	never := func(error, int) (bool, time.Duration) { return false, 0 }
	config := e.config("settings")
	config.InformerConfig.RetryPolicy = operator.BackoffPolicy{Initial: time.Millisecond, MaxAttempts: 2}.Policy()
	config.ManagedKinds = []simple.AppManagedKind{
		{
			Kind: widgetKind, Reconciler: failing,
			ReconcileOptions: simple.ReconcileOptions{RetryPolicy: never, OnExhausted: exhausted},
		},
	}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{
			Kind: configMapKind, Reconciler: failing,
			ReconcileOptions: simple.ReconcileOptions{
				FieldSelectors: []string{"metadata.name=map"}, InformerSupplier: informer.MetadataOnlySupplier,
				OnExhausted: exhausted, MaxConcurrentReconciles: 2,
			},
		},
	}
	e.start(config)
	e.Add(newWidget("widget", ""))
	e.Eventually(func() error { return calls.has("widget: on purpose after 1 calls") })
	e.Add(newConfigMap("another", nil))
	e.Add(newConfigMap("map", nil))
	e.Eventually(func() error { return calls.has("map: on purpose after 5 calls") })
	of := fmt.Sprintf("%T", &Widget{})
	want := []string{
		of + " widget", "widget: on purpose after 1 calls",
		"*v1.PartialObjectMetadata map", "*v1.PartialObjectMetadata map", "*v1.PartialObjectMetadata map",
		"map: on purpose after 5 calls",
	}
	if diff := cmp.Diff(want, calls.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestManagedKindThatIsPlain(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("plain")
	config.ManagedKinds = []simple.AppManagedKind{
		{Kind: widgetKind, Reconciler: calls.reconciler(), ReconcileOptions: simple.ReconcileOptions{UsePlain: true}},
	}
	e.start(config)
	widget := newWidget("it", "one")
	e.Add(widget)
	e.Eventually(func() error { return calls.has("created it") })
	e.patch(widget, `{"metadata":{"labels":{"a":"b"}}}`)
	e.Eventually(func() error { return calls.has("updated it") })
	e.Must(e.Read(widget))
	if len(widget.Finalizers) > 0 {
		t.Errorf("finalizers = %q, want none", widget.Finalizers)
	}
	e.Must(e.Delete(e.Context(), widget))
	e.Eventually(func() error { return calls.has("deleted it") })
}

// Two watchers of the same kind with different selectors receive only the objects that they select.
func TestWeaknessA8_SelectorsOfOneKindDoNotCrossFeed(t *testing.T) {
	e, red, blue := newEnv(t), &record{}, &record{}
	config := e.config("selective")
	selecting := func(calls *record, filter string) simple.AppUnmanagedKind {
		return simple.AppUnmanagedKind{
			Kind: configMapKind, Watcher: calls.watcher(), ReconcileOptions: simple.ReconcileOptions{
				LabelFilters: []string{filter},
			},
		}
	}
	config.UnmanagedKinds = []simple.AppUnmanagedKind{selecting(red, "color=red"), selecting(blue, "color=blue")}
	e.start(config)
	for _, color := range []string{"red", "blue", "green"} {
		e.Add(newConfigMap("is-"+color, map[string]string{"color": color}))
	}
	moves := newConfigMap("moves", map[string]string{"color": "red"})
	e.Add(moves)
	e.Eventually(func() error { return errors.Join(red.has("add is-red", "add moves"), blue.has("add is-blue")) })
	e.patch(moves, `{"metadata":{"labels":{"color":"blue"}}}`)
	e.Eventually(func() error { return errors.Join(red.has("delete moves"), blue.has("add moves")) })
	e.Must(e.Delete(e.Context(), moves))
	e.Eventually(func() error { return blue.has("delete moves") })
	// Each receives a last event, so that all earlier events have arrived.
	for _, color := range []string{"red", "blue"} {
		e.Add(newConfigMap("last-"+color, map[string]string{"color": color}))
	}
	e.Eventually(func() error { return errors.Join(red.has("add last-red"), blue.has("add last-blue")) })
	sorted := func(calls *record) []string { return slices.Sorted(slices.Values(calls.all())) }
	if diff := cmp.Diff([]string{"add is-red", "add last-red", "add moves", "delete moves"}, sorted(red)); diff != "" {
		t.Errorf("calls for red (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"add is-blue", "add last-blue", "add moves", "delete moves"}, sorted(blue)); diff != "" {
		t.Errorf("calls for blue (-want +got):\n%s", diff)
	}
	e.Must(e.Read(newConfigMap("is-green", nil)))
}

func TestUnmanagedKinds(t *testing.T) {
	e, plain, kept := newEnv(t), &record{}, &record{}
	config := e.config("unmanaged")
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{
			Kind: configMapKind, Reconciler: plain.reconciler(),
			ReconcileOptions: simple.ReconcileOptions{LabelFilters: []string{"keep!=true"}},
		},
		{
			Kind: configMapKind, Reconciler: kept.reconciler(),
			ReconcileOptions: simple.ReconcileOptions{LabelFilters: []string{"keep=true"}, UseOpinionated: true},
		},
	}
	e.start(config)
	loose, held := newConfigMap("loose", nil), newConfigMap("held", map[string]string{"keep": "true"})
	e.Add(loose)
	e.Add(held)
	e.Eventually(func() error { return errors.Join(plain.has("created loose"), kept.has("created held")) })
	e.Must(e.Read(loose))
	e.Must(e.Read(held))
	if len(loose.Finalizers) > 0 {
		t.Errorf("finalizers = %q of an object that the app does not handle", loose.Finalizers)
	}
	if want := []string{"core/unmanaged-configmaps"}; !slices.Equal(held.Finalizers, want) {
		t.Errorf("finalizers = %q, want %q", held.Finalizers, want)
	}
	e.Must(e.Delete(e.Context(), loose))
	e.Must(e.Delete(e.Context(), held))
	e.WaitForDeletion(held)
	e.Eventually(func() error { return errors.Join(plain.has("deleted loose"), kept.has("deleted held")) })
}

// A tree of reconcilers works as it does below a ResourceReconciler: the children are watched, and changes of the
// status are written.
func TestTreesOfReconcilers(t *testing.T) {
	tree := func() reconcilers.SubReconciler[*Widget] {
		return reconcilers.Sequence[*Widget]{
			&reconcilers.ChildReconciler[*Widget, *corev1.ConfigMap, *corev1.ConfigMapList]{
				DesiredChild: func(_ context.Context, widget *Widget) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
						Data:       map[string]string{"title": widget.Spec.Title},
					}, nil
				},
				MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
				ReflectChildStatusOnParent: func(_ context.Context, widget *Widget, child *corev1.ConfigMap, err error) {
					if err == nil && child != nil {
						widget.Status.Applied = child.Data["title"]
					}
				},
			},
		}
	}
	for name, managed := range map[string]simple.AppManagedKind{
		"SubReconciler": {Kind: widgetKind, SubReconciler: operator.Widen(tree())},
		"Reconciler":    {Kind: widgetKind, Reconciler: operator.AsReconciler(tree())},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			config := e.config("tree")
			config.ManagedKinds = []simple.AppManagedKind{managed}
			e.start(config)
			widget := newWidget("it", "one")
			e.Add(widget)
			applied := func(title string) {
				e.Eventually(func() error {
					e.Must(e.Read(widget))
					if widget.Status.Applied != title {
						return fmt.Errorf("status = %v", widget.Status)
					}
					return nil
				})
			}
			applied("one")
			e.patch(widget, `{"spec":{"title":"two"}}`)
			applied("two")
			child := newConfigMap("it", nil)
			e.Must(e.Read(child))
			e.Must(e.Delete(e.Context(), child))
			e.Eventually(func() error {
				return client.IgnoreNotFound(e.Get(e.Context(), client.ObjectKeyFromObject(child), child))
			})
			e.Eventually(func() error {
				again := newConfigMap("it", nil)
				again.Namespace = e.Namespace
				return e.Get(e.Context(), client.ObjectKeyFromObject(again), again)
			})
			e.Must(e.Delete(e.Context(), widget))
			e.WaitForDeletion(widget)
		})
	}
}
