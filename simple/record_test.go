// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// record records the calls of handlers.
type record struct {
	mu    sync.Mutex
	calls []string
}

func (r *record) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *record) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// has returns an error unless all calls were made.
func (r *record) has(calls ...string) error {
	all := r.all()
	for _, call := range calls {
		if !slices.Contains(all, call) {
			return fmt.Errorf("no call %q among %q", call, all)
		}
	}
	return nil
}

// watcher returns a watcher that records its calls.
func (r *record) watcher() *simple.Watcher {
	return &simple.Watcher{
		AddFunc: func(_ context.Context, object resource.Object) error {
			r.add("add %s", object.GetName())
			return nil
		},
		UpdateFunc: func(_ context.Context, previous, object resource.Object) error {
			r.add("update %s from %s to %s", object.GetName(), title(previous), title(object))
			return nil
		},
		DeleteFunc: func(_ context.Context, object resource.Object) error {
			r.add("delete %s", object.GetName())
			return nil
		},
	}
}

// reconciler returns a reconciler that records its calls.
func (r *record) reconciler() *simple.Reconciler {
	return &simple.Reconciler{ReconcileFunc: func(
		_ context.Context, req operator.ReconcileRequest,
	) (operator.ReconcileResult, error) {
		r.add("%s %s", strings.ToLower(req.Action.String()), req.Object.GetName())
		return operator.ReconcileResult{}, nil
	}}
}

func title(object resource.Object) string {
	if widget, ok := object.(*Widget); ok {
		return widget.Spec.Title
	}
	return object.GetLabels()["title"]
}
