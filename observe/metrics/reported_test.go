// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/observe"
)

func TestWhatReportedEventsCount(t *testing.T) {
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for want, events := range map[string][]observe.Event{
		"trueup_stale_cache_waits_total{controller=web} 2": {
			&observe.StaleWait{Reconciler: "web"}, &observe.StaleWait{Reconciler: "web"},
		},
		"trueup_halted_waits_total{controller=website} 2": { // with and without a name of the reconciler
			&observe.Deferred{Run: newRun("a"), Reconciler: "WebsiteResourceReconciler", Reason: observe.DeferHaltWait},
			&observe.Deferred{Run: newRun("a"), Reconciler: "website", Reason: observe.DeferHaltWait},
		},
		"trueup_stale_cache_timeouts_total{controller=web} 1": {
			&observe.Deferred{Reconciler: "web", Reason: observe.DeferStaleTimeout},
		},
		"trueup_lease_waits_total{controller=web} 1": {
			&observe.Deferred{Reconciler: "web", Reason: observe.DeferLease},
		},
		"trueup_halted_retries_total{controller=web} 1": {
			&observe.Deferred{Reconciler: "web", Reason: observe.DeferHaltRetry},
		},
		"trueup_halted_waits_total{controller=web} 1": {
			&observe.Deferred{Reconciler: "web", Reason: observe.DeferHaltWait},
		},
		"trueup_hot_loop_waits_total{controller=web} 1": {
			&observe.Deferred{Reconciler: "web", Reason: observe.DeferLoop},
		},
		"trueup_hot_loops_total{cause=writer,controller=web} 1": {
			&observe.LoopFound{Reconciler: "web", Cause: observe.LoopWriter},
			&observe.LoopFound{Run: newRun("a")}, // of another reconciler: it is reported again and again
		},
		"trueup_reflected_errors_total{controller=web,reason=Forbidden} 1": {
			&observe.ErrorReflected{Reconciler: "web", Reason: "Forbidden"},
		},
		"trueup_tracked_unwatched_total{controller=web,kind=Deployment.apps} 1": {
			&observe.TrackedUnwatched{Reconciler: "web", Kind: deployment},
		},
		"trueup_schema_failures_total{kind=Deployment} 1": {
			&observe.AttemptFailed{Attempt: observe.ReadSchema, Kind: deployment, Err: errTest},
		},
		"trueup_owner_index_failures_total{kind=Deployment} 1": {
			&observe.AttemptFailed{Attempt: observe.IndexOwners, Kind: deployment, Err: errTest},
		},
		"trueup_informer_start_failures_total{kind=Deployment.apps} 1": {
			&observe.AttemptFailed{Attempt: observe.StartInformer, Kind: deployment, Err: errTest},
		},
		"trueup_informer_store_errors_total{kind=Deployment.apps,operation=get} 1": {
			&observe.AttemptFailed{Attempt: observe.UseStore, Kind: deployment, Operation: "get", Err: errTest},
		},
		"trueup_informer_live_reads_total{kind=Deployment.apps} 1": {&observe.StoreMissed{Kind: deployment}},
		"trueup_handler_calls_total{action=Created,handler=web,result=failed} 1": {
			&observe.HandlerCalled{Handler: "web", Action: "Created", Result: "failed"},
		},
		"trueup_handler_resources{handler=web} 2": {
			&observe.HandlerMemory{Handler: "web", Change: 3}, &observe.HandlerMemory{Handler: "web", Change: -1},
		},
	} {
		t.Run(want, func(t *testing.T) {
			got := recorded(t, func(l observe.Listener) { send(l, events...) })
			if diff := cmp.Diff([]string{want}, got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a handler gives up", func(t *testing.T) {
		got := recorded(t, func(l observe.Listener) {
			send(l, &observe.HandlerCalled{Handler: "web", Action: "Deleted", Result: "panicked", Exhausted: true})
		})
		if diff := cmp.Diff([]string{
			"trueup_handler_calls_total{action=Deleted,handler=web,result=panicked} 1",
			"trueup_handler_retries_exhausted_total{handler=web} 1",
		}, got); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	})
}
