// SPDX-License-Identifier: Apache-2.0

package simple_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trueup.dev/app"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

var errOnPurpose = errors.New("on purpose")

// watcherFuncs selects the functions of a watcher under test.
type watcherFuncs struct{ add, update, remove, sync bool }

// watchers returns a Watcher and a TypedWatcher with these functions. The functions record the last call and fail.
func (f watcherFuncs) watchers(seen *string) map[string]operator.ResourceWatcher {
	untyped, typed := &simple.Watcher{}, &simple.WatcherFuncs[*Widget]{}
	set := func(
		isSet bool, name string, untyped *func(context.Context, resource.Object) error,
		typed *func(context.Context, *Widget) error,
	) {
		if !isSet {
			return
		}
		*untyped = func(_ context.Context, object resource.Object) error {
			*seen = name + " " + title(object)
			return errOnPurpose
		}
		*typed = func(ctx context.Context, widget *Widget) error { return (*untyped)(ctx, widget) }
	}
	set(f.add, "add", &untyped.AddFunc, &typed.AddFunc)
	set(f.remove, "delete", &untyped.DeleteFunc, &typed.DeleteFunc)
	set(f.sync, "sync", &untyped.SyncFunc, &typed.SyncFunc)
	if f.update {
		untyped.UpdateFunc = func(_ context.Context, previous, object resource.Object) error {
			*seen = "update " + title(previous) + " " + title(object)
			return errOnPurpose
		}
		typed.UpdateFunc = func(ctx context.Context, previous, object *Widget) error {
			return untyped.UpdateFunc(ctx, previous, object)
		}
	}
	return map[string]operator.ResourceWatcher{"Watcher": untyped, "TypedWatcher": typed}
}

func TestWatcherCallsItsFunctions(t *testing.T) {
	object := newWidget("w", "new")
	add := func(w operator.ResourceWatcher) error { return w.Add(t.Context(), object) }
	update := func(w operator.ResourceWatcher) error { return w.Update(t.Context(), newWidget("w", "old"), object) }
	remove := func(w operator.ResourceWatcher) error { return w.Delete(t.Context(), object) }
	sync := func(w operator.ResourceWatcher) error {
		return w.(operator.Syncer[resource.Object]).Sync(t.Context(), object)
	}
	all := watcherFuncs{add: true, update: true, remove: true, sync: true}
	for name, tc := range map[string]struct {
		funcs   watcherFuncs
		call    func(operator.ResourceWatcher) error
		want    string
		wantErr error
	}{
		"Add":                            {funcs: all, call: add, want: "add new", wantErr: errOnPurpose},
		"Update has the previous object": {funcs: all, call: update, want: "update old new", wantErr: errOnPurpose},
		"Delete":                         {funcs: all, call: remove, want: "delete new", wantErr: errOnPurpose},
		"Sync":                           {funcs: all, call: sync, want: "sync new", wantErr: errOnPurpose},
		"no AddFunc succeeds":            {call: add},
		"no UpdateFunc succeeds":         {call: update},
		"no DeleteFunc succeeds":         {call: remove},
		"no SyncFunc calls AddFunc": {
			funcs: watcherFuncs{add: true}, call: sync, want: "add new", wantErr: errOnPurpose,
		},
		"neither SyncFunc nor AddFunc": {call: sync},
	} {
		seen := ""
		for kind, watcher := range tc.funcs.watchers(&seen) {
			t.Run(kind+"/"+name, func(t *testing.T) {
				seen = ""
				err := tc.call(watcher)
				if diff := cmp.Diff(tc.wantErr, err, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if seen != tc.want {
					t.Errorf("called %q, want %q", seen, tc.want)
				}
			})
		}
	}
}

func TestTypedWatcherTakesNoOtherType(t *testing.T) {
	seen := ""
	watcher := watcherFuncs{add: true, update: true, remove: true, sync: true}.watchers(&seen)["TypedWatcher"]
	widget, other := newWidget("w", ""), newGadgetV1("g", "")
	for name, err := range map[string]error{
		"Add": watcher.Add(t.Context(), other), "Delete": watcher.Delete(t.Context(), other),
		"Sync":   watcher.(operator.Syncer[resource.Object]).Sync(t.Context(), other),
		"Update": watcher.Update(t.Context(), widget, other), "previous": watcher.Update(t.Context(), other, widget),
	} {
		if mismatch := (*operator.CannotCastError)(nil); !errors.As(err, &mismatch) {
			t.Errorf("%s: error = %v, want a CannotCastError", name, err)
		}
	}
	if seen != "" {
		t.Errorf("called %q", seen)
	}
}

func TestNilFunctions(t *testing.T) {
	if result, err := (&simple.Reconciler{}).Reconcile(t.Context(), operator.ReconcileRequest{}); err != nil ||
		result.RequeueAfter != 0 || result.State != nil {
		t.Errorf("a Reconciler without a function returns %v, %v", result, err)
	}
	if err := (&simple.Validator{}).Validate(t.Context(), &app.AdmissionRequest{}); err != nil {
		t.Errorf("a Validator without a function returns %v", err)
	}
	object := newWidget("w", "it")
	response, err := (&simple.Mutator{}).Mutate(t.Context(), &app.AdmissionRequest{Object: object})
	if err != nil || response.UpdatedObject != object {
		t.Errorf("a Mutator without a function returns %v, %v", response, err)
	}
}
