// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"trueup.dev/reconcilers"
	"trueup.dev/tracker"
)

// brokenTracker returns an error from GetObservers.
type brokenTracker struct {
	tracker.Tracker
	err error
}

func (t brokenTracker) GetObservers(client.Object) ([]types.NamespacedName, error) { return nil, t.err }

func TestEnqueueTracked(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		obj     string
		want    []reconcilers.Request
		wantLog []string
	}{
		"tracked":                {obj: "theme", want: []reconcilers.Request{testRequest}},
		"not tracked":            {obj: "other"},
		"tracker fails":          {err: errTest, obj: "theme", wantLog: []string{"unable to get tracked requests"}},
		"tracker fails, quietly": {err: errQuiet, obj: "theme"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := w.Config
			wantErr(t, nil, config.Tracker.TrackObject(newConfigMap("theme"), newResource()))
			if tc.err != nil {
				config.Tracker = brokenTracker{config.Tracker, tc.err}
			}
			log, lines := newLog(0)
			handler := reconcilers.EnqueueTracked(withLog(reconcilers.StashConfig(context.Background(), config), log))
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcilers.Request]())
			defer queue.ShutDown()
			handler.Create(context.Background(), event.CreateEvent{Object: newConfigMap(tc.obj)}, queue)
			got := []reconcilers.Request{}
			for queue.Len() > 0 {
				req, _ := queue.Get()
				got = append(got, req)
				queue.Done(req)
			}
			equal(t, "requests", tc.want, got)
			equal(t, "log", tc.wantLog, lines.messages())
		})
	}

	t.Run("needs a config", func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic without a config")
			}
		}()
		reconcilers.EnqueueTracked(context.Background())
	})
}
