// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

// finish plays a run for the Database a of a cluster.
func finish(r *recorder.Recorder, cluster string, err error) {
	run := &observe.Run{
		Controller: "database", Kind: database, Started: time.Now(),
		Object: types.NamespacedName{Namespace: "default", Name: "a"},
	}
	run.SetCluster(cluster)
	for _, e := range []observe.Event{
		&observe.ReconcileStarted{Run: run}, &observe.ReconcileFinished{Run: run, Err: err},
	} {
		r.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
	}
}

func becomes(r *recorder.Recorder, cluster string, before, state observe.ClusterState) {
	//nolint:staticcheck // the recorder ignores the context
	r.Observe(nil, &observe.ClusterChanged{Cluster: cluster, Before: before, State: state})
}

// Which cluster does not work, and since when?
func TestClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recorder.New(recorder.Options{})
		finish(r, "", nil)
		if all := r.Clusters(); all != nil {
			t.Errorf("clusters of a program with one cluster: %v", all)
		}
		began := time.Now()
		for _, name := range []string{"asia", "europe", "america", "africa"} {
			becomes(r, name, "", observe.ClusterStarting)
		}
		wait := observe.CacheWait{
			Controller: "database", Cluster: "africa", Kind: secret, Since: began, Err: errors.New("no route to host"),
		}
		r.Observe(t.Context(), &wait)
		time.Sleep(time.Minute)
		for _, name := range []string{"asia", "europe", "america"} {
			becomes(r, name, observe.ClusterStarting, observe.ClusterReady)
			finish(r, name, nil)
		}
		time.Sleep(time.Hour)
		finish(r, "europe", errors.New("timeout"))
		becomes(r, "europe", observe.ClusterReady, observe.ClusterPaused)
		becomes(r, "america", observe.ClusterReady, observe.ClusterGone)
		want := []recorder.Cluster{
			{Name: "europe", State: observe.ClusterPaused, Since: began.Add(time.Hour + time.Minute), Objects: 1, Trouble: 1},
			{Name: "africa", State: observe.ClusterStarting, Since: began, CacheWaits: []recorder.CacheWait{
				{Object: recorder.Ref{Version: "v1", Kind: "Secret"}, Since: began, Error: "no route to host"},
			}},
			{Name: "america", State: observe.ClusterGone, Since: began.Add(time.Hour + time.Minute)},
			{Name: "asia", State: observe.ClusterReady, Since: began.Add(time.Minute), Objects: 1},
		}
		if diff := cmp.Diff(want, r.Clusters()); diff != "" {
			t.Errorf("clusters (-want +got):\n%s", diff)
		}
	})
}

// Of many clusters that have come and gone, the last 100 are named.
func TestClusters_Gone(t *testing.T) {
	r := recorder.New(recorder.Options{})
	for i := range 150 {
		name := fmt.Sprintf("cluster-%03d", i)
		becomes(r, name, "", observe.ClusterReady)
		if i != 0 {
			becomes(r, name, observe.ClusterReady, observe.ClusterGone)
		}
	}
	all := r.Clusters()
	got := []string{fmt.Sprint(len(all)), all[0].Name, all[99].Name, all[100].Name}
	if diff := cmp.Diff([]string{"101", "cluster-050", "cluster-149", "cluster-000"}, got); diff != "" {
		t.Errorf("number of clusters, and some of them (-want +got):\n%s", diff)
	}
}
