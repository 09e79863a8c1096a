// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/observe"
)

func runIn(cluster string) *observe.Run {
	run := newRun("a")
	run.SetCluster(cluster)
	return run
}

// TestClusters sends the events of two clusters with objects of the same names. One cluster leaves.
func TestClusters(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	gone := &observe.ClusterChanged{Cluster: "a", Before: observe.ClusterReady, State: observe.ClusterGone}
	for _, tc := range []struct {
		reason, metric string
		of             func(cluster string) observe.Event
		both, left     string
	}{
		{
			reason: "clusters", metric: "trueup_clusters",
			of: func(cluster string) observe.Event {
				return &observe.ClusterChanged{Cluster: cluster, State: observe.ClusterReady}
			},
			both: "trueup_clusters{state=Ready} 2", left: "trueup_clusters{state=Ready} 1",
		},
		{
			reason: "caches", metric: "trueup_unsynced_caches",
			of: func(cluster string) observe.Event {
				return &observe.CacheWait{Controller: "web", Cluster: cluster, Kind: kind}
			},
			both: "trueup_unsynced_caches{controller=web,kind=Deployment.apps} 2",
			left: "trueup_unsynced_caches{controller=web,kind=Deployment.apps} 1",
		},
		{
			reason: "steps without a kind", metric: "trueup_inactive_steps",
			of: func(cluster string) observe.Event {
				return &observe.KindServed{Reconciler: "web", Step: "step", Kind: kind, Cluster: cluster}
			},
			both: "trueup_inactive_steps{controller=web,kind=apps/v1, Kind=Deployment,step=step} 2",
			left: "trueup_inactive_steps{controller=web,kind=apps/v1, Kind=Deployment,step=step} 1",
		},
		{
			reason: "remembered resources", metric: "trueup_handler_resources",
			of: func(cluster string) observe.Event {
				return &observe.HandlerMemory{Handler: "web", Cluster: cluster, Change: 3}
			},
			both: "trueup_handler_resources{handler=web} 6", left: "trueup_handler_resources{handler=web} 3",
		},
		{
			reason: "failing objects", metric: "trueup_failing_objects",
			of: func(cluster string) observe.Event {
				return &observe.ReconcileFinished{Run: runIn(cluster), Err: errTest}
			},
			both: "trueup_failing_objects{controller=website,step=} 2",
			left: "trueup_failing_objects{controller=website,step=} 1",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for _, test := range []struct {
				want   string
				events []observe.Event
			}{
				{tc.both, []observe.Event{tc.of("a"), tc.of("b")}},
				{tc.left, []observe.Event{tc.of("a"), tc.of("b"), gone}},
			} {
				got := only(recorded(t, func(l observe.Listener) {
					if tc.reason != "clusters" {
						send(l, &observe.ClusterChanged{Cluster: "a", State: observe.ClusterReady})
					}
					send(l, test.events...)
				}), tc.metric)
				if diff := cmp.Diff([]string{test.want}, got); diff != "" {
					t.Errorf("series (-want +got):\n%s", diff)
				}
			}
		})
	}
}
