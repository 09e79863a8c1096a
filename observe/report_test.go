// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWhoReceivesReports(t *testing.T) {
	var got []string
	listener := func(name string) Listener {
		return Func(func(_ context.Context, event Event) {
			if e, ok := event.(*Deferred); ok {
				name := name
				if e.Run != nil {
					name += " with the run of " + e.Run.Controller
				}
				got = append(got, name)
			}
		})
	}
	ofRun, given := &Hub{}, &Hub{}
	ofRun.Add(listener("the hub of the run"))
	given.Add(listener("the given hub"))
	report := func(ctx context.Context) { given.Report(ctx, &Deferred{Reason: DeferLoop}) }
	o := &controllerObserver{hub: ofRun, name: "web"}
	o.reconciler = reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		report(ctx)
		return reconcile.Result{}, nil
	})
	if _, err := o.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	report(t.Context())
	(*Hub)(nil).Report(t.Context(), &Deferred{})
	if diff := cmp.Diff([]string{"the hub of the run with the run of web", "the given hub"}, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestOf_withoutManager(t *testing.T) {
	if hub := Of(nil); hub == nil || hub != Of(nil) {
		t.Error("there is not one hub of what belongs to no manager")
	}
}
