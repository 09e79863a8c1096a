// SPDX-License-Identifier: Apache-2.0

package ctrlfields

import (
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewQueue is the type of the function by which a controller makes its queue when it starts.
type NewQueue = func(
	controller string, rateLimiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request]

// Controller gives access to a controller of [reconcile.Request] that controller-runtime has built. The reconciler and
// the options of such a controller are in exported fields, but its type is internal to controller-runtime, and builders
// offer no way to change the options that an author sets.
//
// Its methods must not be called before [ControllerOf] has returned true. Changes have an effect before the controller
// is started.
type Controller struct{ fields reflect.Value }

// ControllerOf returns the controller that a runnable is. It returns false for all other runnables, including
// controllers of other types of requests.
func ControllerOf(runnable manager.Runnable) (Controller, bool) {
	fields, ok := structOf(runnable)
	if !ok {
		return Controller{}, false
	}
	c := Controller{fields}
	return c, c.settable("Do", reflect.TypeFor[reconcile.Reconciler]()) &&
		c.settable("NewQueue", reflect.TypeFor[NewQueue]()) && c.settable("EnableWarmup", reflect.TypeFor[*bool]()) &&
		c.settable("CacheSyncTimeout", reflect.TypeFor[time.Duration]()) && c.fields.FieldByName("Queue").IsValid()
}

func (c Controller) settable(name string, t reflect.Type) bool {
	found := c.fields.FieldByName(name)
	return found.IsValid() && found.CanSet() && found.Type() == t
}

// Name returns the name of the controller.
func (c Controller) Name() string { return option[string](c, "Name") }

// WrapReconciler replaces the reconciler with the result of wrap.
func (c Controller) WrapReconciler(wrap func(inner reconcile.Reconciler) reconcile.Reconciler) {
	c.fields.FieldByName("Do").Set(reflect.ValueOf(wrap(c.Reconciler())))
}

// Reconciler returns the reconciler of the controller.
func (c Controller) Reconciler() reconcile.Reconciler {
	reconciler, _ := c.fields.FieldByName("Do").Interface().(reconcile.Reconciler)
	return reconciler
}

// SetNewQueue replaces the function by which the controller makes its queue.
func (c Controller) SetNewQueue(f NewQueue) { c.fields.FieldByName("NewQueue").Set(reflect.ValueOf(f)) }

// HasDefaultQueue reports whether the controller makes its queue with the function of controller-runtime, or with the
// function of Config.FairNamespaces, and not with one that its author has set.
func (c Controller) HasDefaultQueue() bool {
	return c.makesQueueIn("sigs.k8s.io/controller-runtime/pkg/controller.") || c.HasFairQueue()
}

// HasFairQueue reports whether the controller makes its queue with the function of Config.FairNamespaces.
func (c Controller) HasFairQueue() bool {
	return c.makesQueueIn("trueup.dev/internal/engine/fairqueue.")
}

func (c Controller) makesQueueIn(prefix string) bool {
	function := runtime.FuncForPC(c.fields.FieldByName("NewQueue").Pointer())
	return function != nil && strings.HasPrefix(function.Name(), prefix)
}

// SetWarmup makes the method Warmup of the controller start its queue and its sources, and wait for them until timeout.
func (c Controller) SetWarmup(timeout time.Duration) {
	c.fields.FieldByName("EnableWarmup").Set(reflect.ValueOf(new(true)))
	c.fields.FieldByName("CacheSyncTimeout").SetInt(int64(timeout))
}

// LogConstructor returns the function that makes the logger of a request, or nil.
func (c Controller) LogConstructor() func(request *reconcile.Request) logr.Logger {
	return option[func(request *reconcile.Request) logr.Logger](c, "LogConstructor")
}

// Enqueue adds a request to the queue of the controller. It does nothing before the controller is started, and must not
// be called while it starts.
func (c Controller) Enqueue(request reconcile.Request) {
	if queue, ok := c.fields.FieldByName("Queue").Interface().(interface{ Add(reconcile.Request) }); ok {
		queue.Add(request)
	}
}

// Options returns the options of the controller that do not change what it reconciles: numbers, durations and flags.
func (c Controller) Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: option[int](c, "MaxConcurrentReconciles"),
		CacheSyncTimeout:        option[time.Duration](c, "CacheSyncTimeout"),
		ReconciliationTimeout:   option[time.Duration](c, "ReconciliationTimeout"),
		RecoverPanic:            option[*bool](c, "RecoverPanic"),
		NeedLeaderElection:      option[*bool](c, "LeaderElected"),
		EnableWarmup:            option[*bool](c, "EnableWarmup"),
	}
}

func option[T any](c Controller, name string) T {
	value, _ := exported[T](c.fields, name)
	return value
}
