// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/informer"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/resource"
	"trueup.dev/sandbox"
	"trueup.dev/simple"
)

const oldFinalizer = "myapp-widgets-finalizer"

// The section "Going back" of the guide: objects are handled by the app, then by a program that knows only the old
// name, and deleted.
func TestMigratedAppGoesBack(t *testing.T) {
	kind := resource.Kind{
		Schema: resource.NewSimpleSchema("example.com", "v1", &Board{}, &BoardList{}, resource.WithKind("Widget")),
	}
	for name, versions := range map[string][]struct {
		of         func(kind resource.Kind, watcher *simple.Watcher) simple.AppManagedKind
		finalizers []string
	}{
		"the old name is kept": {{OldWidgetKind, []string{oldFinalizer}}},
		"the old name comes back": {
			{WidgetKind, []string{"example.com/myapp-widgets"}}, {OldWidgetKind, []string{oldFinalizer}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := apitest.New(t, nil, sandbox.TestOptions{CRDs: []any{widgetCRD()}})
			e.Add(newWidget("one", oldFinalizer), newWidget("two"), newWidget("three"))
			for _, version := range versions {
				handled := &lines{}
				handle := func(_ context.Context, object resource.Object) error {
					handled.add(object.GetName())
					return nil
				}
				made, err := simple.NewApp(simple.AppConfig{
					Name: "myapp", KubeConfig: *e.RESTConfig(), MetricsBindAddress: "0", HealthBindAddress: "0",
					LeaderElection: simple.LeaderElection{Disabled: true},
					InformerConfig: simple.AppInformerConfig{
						InformerOptions: informer.Options{Namespaces: []string{e.Namespace}},
					},
					ManagedKinds: []simple.AppManagedKind{version.of(kind, &simple.Watcher{AddFunc: handle})},
				})
				e.Must(err)
				stop := e.Go("the app", made.Run)
				e.Eventually(func() error {
					for _, name := range []string{"one", "two", "three"} {
						widget := newWidget(name)
						if err := e.Read(widget); err != nil {
							return err
						}
						if got := widget.GetFinalizers(); !slices.Equal(got, version.finalizers) {
							return fmt.Errorf("%s has the finalizers %q, want %q", name, got, version.finalizers)
						}
					}
					return handled.missing("one", "two", "three")
				})
				stop()
			}
			e.Must(e.Delete(e.Context(), placed(e, newWidget("one")))) // no program runs: the finalizer keeps it
			if err := e.Read(newWidget("one")); err != nil {
				t.Fatal(err)
			}
			calls := &lines{}
			e.Go("the old program", func(ctx context.Context) error { return oldProgram(ctx, e, calls) })
			e.WaitForDeletion(placed(e, newWidget("one")))
			e.Eventually(func() error { return calls.missing("sync two", "sync three", "delete one") })
			for _, name := range []string{"two", "three"} {
				e.Must(e.Delete(e.Context(), placed(e, newWidget(name))))
				e.WaitForDeletion(placed(e, newWidget(name)))
			}
			e.Must(calls.missing("delete two", "delete three"))
		})
	}
}

// oldProgram handles widgets as a watcher of the App SDK does, with one finalizer.
func oldProgram(ctx context.Context, e *apitest.Env, calls *lines) error {
	c, err := client.NewWithWatch(e.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/v1")
	list.SetKind("WidgetList")
	events, err := c.Watch(ctx, list, client.InNamespace(e.Namespace))
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		widget, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case ctx.Err() != nil: // the last event is an error
			return nil
		case !ok:
			return fmt.Errorf("event %v", event)
		}
		kept := slices.Contains(widget.GetFinalizers(), oldFinalizer)
		switch {
		case event.Type == watch.Deleted: // with the finalizers that it had
		case widget.GetDeletionTimestamp() != nil && kept:
			calls.add("delete " + widget.GetName())
			patch := client.MergeFrom(widget.DeepCopy())
			widget.SetFinalizers(slices.DeleteFunc(widget.GetFinalizers(), func(f string) bool { return f == oldFinalizer }))
			if err := c.Patch(ctx, widget, patch); err != nil && ctx.Err() == nil { // the test may end before the answer
				return err
			}
		case kept:
			calls.add("sync " + widget.GetName())
		}
	}
	return nil
}

func newWidget(name string, finalizers ...string) *unstructured.Unstructured {
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
	}}
	widget.SetFinalizers(finalizers)
	return widget
}

// placed moves an object into the namespace of the test.
func placed(e *apitest.Env, object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetNamespace(e.Namespace)
	return object
}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := trackerCRD("Widget", "widgets")
	crd.ObjectMeta = metav1.ObjectMeta{Name: "widgets.example.com"}
	crd.Spec.Group = "example.com"
	return crd
}

// lines are recorded calls.
type lines struct {
	mu   sync.Mutex
	made []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made = append(l.made, line)
}

func (l *lines) missing(wanted ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range wanted {
		if !slices.Contains(l.made, line) {
			return fmt.Errorf("no call %q among %s", line, strings.Join(l.made, ", "))
		}
	}
	return nil
}
