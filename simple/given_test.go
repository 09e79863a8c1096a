// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/informer"
	"trueup.dev/operator"
	"trueup.dev/reconcilers"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// typedWidgets is a watcher for Widgets that records its calls.
type typedWidgets struct{ *record }

func (w typedWidgets) Add(_ context.Context, widget *Widget) error {
	w.add("add %s", widget.Name)
	return nil
}

func (w typedWidgets) Update(_ context.Context, previous, widget *Widget) error {
	w.add("update %s from %s to %s", widget.Name, previous.Spec.Title, widget.Spec.Title)
	return nil
}

func (w typedWidgets) Delete(_ context.Context, widget *Widget) error {
	w.add("delete %s", widget.Name)
	return nil
}

const ownFinalizer = "own.example.com/widgets"

// givenHandlers returns opinionated handlers, in the forms in which plain ones are passed.
func givenHandlers(calls *record) map[string]any {
	return map[string]any{
		"watcher": operator.ResourceWatcher(
			operator.OpinionatedWatcher[resource.Object](ownFinalizer, calls.watcher()),
		),
		"typed watcher": operator.WidenWatcher(operator.OpinionatedWatcher[*Widget](ownFinalizer, typedWidgets{calls})),
		"reconciler": operator.AsReconciler(
			operator.NewOpinionated[resource.Object](ownFinalizer, calls.reconciler()),
		),
		"literal": &operator.OpinionatedReconciler{Finalizer: ownFinalizer, Reconciler: calls.reconciler()},
		"typed reconciler": operator.AsReconciler(operator.NewOpinionated[*Widget](ownFinalizer,
			&operator.TypedReconciler[*Widget]{ReconcileFunc: func(
				ctx context.Context, req operator.TypedReconcileRequest[*Widget],
			) (operator.ReconcileResult, error) {
				return calls.reconciler().Reconcile(ctx, operator.ReconcileRequest{Action: req.Action, Object: req.Object})
			}})),
	}
}

// wantOpinionated checks that a handler adds only its own finalizer to a widget.
func (e *env) wantOpinionated(calls *record, watcher bool) {
	e.Helper()
	widget := newWidget("it", "first")
	e.Add(widget)
	created, deleted := "created it", "deleted it"
	if watcher {
		created, deleted = "add it", "delete it"
	}
	e.Eventually(func() error { return calls.has(created) })
	e.Must(e.Read(widget))
	if !slices.Equal(widget.Finalizers, []string{ownFinalizer}) {
		e.Errorf("finalizers = %q, want that of the handler", widget.Finalizers)
	}
	e.Must(e.Delete(e.Context(), widget))
	e.WaitForDeletion(widget)
	if err := calls.has(deleted); err != nil {
		e.Error(err)
	}
	if all := calls.all(); len(all) != 2 {
		e.Errorf("calls = %q, want two", all)
	}
}

func TestOpinionatedHandlersAreNotWrappedAgain(t *testing.T) {
	for name := range givenHandlers(&record{}) {
		t.Run("app, "+name, func(t *testing.T) {
			e, calls := newEnv(t), &record{}
			kind := simple.AppManagedKind{Kind: widgetKind}
			handler := givenHandlers(calls)[name]
			watcher, isWatcher := handler.(operator.ResourceWatcher)
			if isWatcher {
				kind.Watcher = watcher
			} else {
				kind.Reconciler = handler.(operator.Reconciler)
			}
			config := e.config("given")
			config.ManagedKinds = []simple.AppManagedKind{kind}
			e.start(config)
			e.wantOpinionated(calls, isWatcher)
		})
		t.Run("informer controller, "+name, func(t *testing.T) {
			e, calls := newEnv(t), &record{}
			scheme := runtime.NewScheme()
			e.Must(errors.Join(clientgoscheme.AddToScheme(scheme), widgetKind.AddToScheme(scheme)))
			mgr, err := ctrl.NewManager(e.RESTConfig(), ctrl.Options{
				Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{
					SkipNameValidation: new(true),
				},
			})
			e.Must(err)
			informer, err := informer.DefaultSupplier(widgetKind, mgr, informer.Options{
				Namespaces: []string{e.Namespace},
			})
			e.Must(err)
			controller := operator.NewInformerController(operator.InformerControllerConfig{Manager: mgr})
			e.Must(controller.AddInformer(informer, "widgets"))
			handler := givenHandlers(calls)[name]
			watcher, isWatcher := handler.(operator.ResourceWatcher)
			if isWatcher {
				e.Must(controller.AddWatcher(watcher, "widgets"))
			} else {
				e.Must(controller.AddReconciler(handler.(operator.Reconciler), "widgets"))
			}
			e.Go("the controller", controller.Run)
			e.wantOpinionated(calls, isWatcher)
		})
	}
}

// An OpinionatedReconciler without a finalizer gets the finalizer of the app, and also makes an unmanaged kind
// opinionated.
func TestOpinionatedReconcilerInAnApp(t *testing.T) {
	e, calls := newEnv(t), &record{}
	config := e.config("literal")
	config.UnmanagedKinds = []simple.AppUnmanagedKind{
		{Kind: widgetKind, Reconciler: &operator.OpinionatedReconciler{Reconciler: calls.reconciler()}},
	}
	e.start(config)
	widget := newWidget("it", "")
	e.Add(widget)
	e.Eventually(func() error { return calls.has("created it") })
	e.Must(e.Read(widget))
	if want := []string{group + "/literal-widgets"}; !slices.Equal(widget.Finalizers, want) {
		e.Errorf("finalizers = %q, want %q", widget.Finalizers, want)
	}
	e.Must(e.Delete(e.Context(), widget))
	e.WaitForDeletion(widget)
	e.Must(calls.has("deleted it"))
}

// The ErrorHandler of the app and the OnError of the kind are called for each failed attempt, in both styles.
func TestErrorHandlerIsCalledForHandlerFailures(t *testing.T) {
	failing := func(calls *record) func() error {
		return func() error {
			if calls.add("called"); len(calls.all()) < 3 {
				return errOnPurpose
			}
			return nil
		}
	}
	for name, set := range map[string]func(kind *simple.AppManagedKind, call func() error){
		"watcher": func(kind *simple.AppManagedKind, call func() error) {
			kind.Watcher = &simple.Watcher{AddFunc: func(context.Context, resource.Object) error { return call() }}
		},
		"reconciler": func(kind *simple.AppManagedKind, call func() error) {
			kind.Reconciler = &simple.Reconciler{ReconcileFunc: func(
				context.Context, operator.ReconcileRequest,
			) (operator.ReconcileResult, error) {
				return operator.ReconcileResult{}, call()
			}}
		},
		"tree": func(kind *simple.AppManagedKind, call func() error) {
			kind.SubReconciler = operator.Widen(reconcilers.SubReconciler[*Widget](&reconcilers.SyncReconciler[*Widget]{
				Sync: func(context.Context, *Widget) error { return call() },
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, calls := newEnv(t), &record{}
			var ofApp, ofKind atomic.Int32
			config := e.config("reporting.example.com") // a name with a dot is valid
			config.InformerConfig.RetryPolicy = operator.BackoffPolicy{Initial: time.Millisecond}.Policy()
			config.InformerConfig.InformerOptions.ErrorHandler = func(_ context.Context, err error) {
				if errors.Is(err, errOnPurpose) {
					ofApp.Add(1)
				}
			}
			kind := simple.AppManagedKind{Kind: widgetKind, ReconcileOptions: simple.ReconcileOptions{
				OnError: func(_ context.Context, object resource.Object, err error) {
					if object.GetName() == "it" && errors.Is(err, errOnPurpose) {
						ofKind.Add(1)
					}
				},
			}}
			set(&kind, failing(calls))
			config.ManagedKinds = []simple.AppManagedKind{kind}
			e.start(config)
			widget := newWidget("it", "")
			e.Add(widget)
			e.Eventually(func() error {
				if got := len(calls.all()); got < 3 {
					return fmt.Errorf("%d calls, want 3", got)
				}
				return nil
			})
			if ofApp.Load() != 2 || ofKind.Load() != 2 {
				t.Errorf("ErrorHandler: %d calls, OnError: %d calls, want 2 each", ofApp.Load(), ofKind.Load())
			}
			e.Must(e.Delete(e.Context(), widget))
			e.WaitForDeletion(widget)
		})
	}
}
