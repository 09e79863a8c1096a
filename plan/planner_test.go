// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/external"
	"trueup.dev/plan"
)

func wantError(t *testing.T, want string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestNew_Errors(t *testing.T) {
	fails := func(context.Context, ctrl.Manager) error { return errors.New("it fails") }
	addsNone := func(context.Context, ctrl.Manager) error { return nil }
	for name, c := range map[string]struct {
		cluster client.Client
		setUp   plan.SetUp
		options plan.Options
		want    string
	}{
		"no client":        {nil, setUp, plan.Options{}, "a client and a set-up function are required"},
		"no set-up":        {newCluster(), nil, plan.Options{}, "a client and a set-up function are required"},
		"negative limit":   {newCluster(), setUp, plan.Options{MaxReconciles: -1}, "must not be negative, got -1"},
		"negative number":  {newCluster(), setUp, plan.Options{Parallel: -1}, "must not be negative, got -1"},
		"negative timeout": {newCluster(), setUp, plan.Options{Timeout: -1}, "must not be negative, got -1ns"},
		"set-up fails":     {newCluster(), fails, plan.Options{}, "it fails"},
		"set-up adds none": {newCluster(), addsNone, plan.Options{}, "no controller"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plan.New(t.Context(), c.cluster, c.setUp, c.options)
			wantError(t, c.want, err)
		})
	}
}

// two controllers of one kind, where one cancels the plan.
func TestPlanner_Errors(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	both := func(ctx context.Context, mgr ctrl.Manager) error {
		if !external.InPlan(ctx) {
			t.Error("the context of the set-up does not belong to a plan")
		}
		bldr := ctrl.NewControllerManagedBy(mgr).Named("cancels").For(&corev1.ConfigMap{})
		return errors.Join(setUp(ctx, mgr), bldr.Complete(
			reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				cancel()
				return reconcile.Result{}, nil
			}),
		))
	}
	planner, err := plan.New(t.Context(), newCluster(), both, plan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Close()
	_, err = planner.Plan(ctx, plan.Request{Namespace: "default", Name: "one"})
	wantError(t, `unknown controller "", must be one of configmap, cancels`, err)
	wantError(t, `unknown controller "other"`, planner.Each(ctx, plan.Selection{Controller: "other"}, nil))
	_, err = planner.KindFor("pods")
	wantError(t, `no controller watches "pods", must be one of configmap`, err)
	if kind, err := planner.KindFor("ConfigMap"); err != nil || kind.Kind != "ConfigMap" {
		t.Errorf("kind %v, error %v", kind, err)
	}

	n := 0
	stop := errors.New("stop")
	err = planner.Each(ctx, plan.Selection{Controller: "configmap"}, func(*plan.Plan) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("error %v after %d plans, want that of the function after the first", err, n)
	}
	_, err = planner.Plan(ctx, plan.Request{Controller: "cancels", Namespace: "default", Name: "one"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of an interrupted plan", err)
	}
}

// What does a plan say about reconcilers that take too long?
func TestPlanner_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		slow := func(_ context.Context, mgr ctrl.Manager) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(
				reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
					if r.Name == "one" {
						<-ctx.Done()
						return reconcile.Result{}, ctx.Err()
					}
					<-released
					return reconcile.Result{}, nil
				}),
			)
		}
		planner, err := plan.New(t.Context(), newCluster(), slow, plan.Options{Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer planner.Close()
		defer close(released)
		made, err := planner.Plan(t.Context(), plan.Request{Namespace: "default", Name: "one"})
		if err != nil {
			t.Fatal(err)
		}
		want := "! error of configmap default/one: the time limit of a reconcile, 1s, has passed: " +
			"context deadline exceeded\nNo changes.\n"
		if diff := cmp.Diff(want, made.Text()); diff != "" {
			t.Errorf("a reconciler that returns (-want +got):\n%s", diff)
		}
		for range 2 { // the planner is not used any further
			_, err = planner.Plan(t.Context(), plan.Request{Namespace: "default", Name: "two"})
			wantError(t, "the reconciler of configmap default/two has not returned 5s after its time limit of 1s", err)
		}
	})
}

// Are parallel plans the same as plans one after the other, in the same order, by as few requests for namespaces?
func TestPlanner_Parallel(t *testing.T) {
	const objects = 60
	namespaceReads := 0
	var mu sync.Mutex
	cluster := interceptor.NewClient(newCluster().(client.WithWatch), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption,
		) error {
			if obj.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
				mu.Lock()
				defer mu.Unlock()
				namespaceReads++
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	for i := range objects {
		if err := cluster.Create(t.Context(), given(fmt.Sprintf("object-%02d", i))); err != nil {
			t.Fatal(err)
		}
	}
	texts := func(parallel int) (texts []string) {
		namespaceReads = 0
		planner, err := plan.New(t.Context(), cluster, setUp, plan.Options{Parallel: parallel})
		if err != nil {
			t.Fatal(err)
		}
		defer planner.Close()
		err = planner.Each(t.Context(), plan.Selection{}, func(p *plan.Plan) error {
			texts = append(texts, fmt.Sprintf("%v: %s", p.Requests, p.Text()))
			return nil
		})
		if err != nil || namespaceReads != 1 {
			t.Errorf("parallel %d: error %v, %d reads of namespaces, want 1", parallel, err, namespaceReads)
		}
		return texts
	}
	want := texts(1)
	if len(want) != objects+2 {
		t.Fatalf("%d plans", len(want))
	}
	if diff := cmp.Diff(want, texts(8)); diff != "" {
		t.Errorf("parallel plans (-one after the other +got):\n%s", diff)
	}
}

// What happens if a set-up function cannot be called again?
func TestPlanner_ParallelErrors(t *testing.T) {
	shared := &mirror{}
	calls := 0
	for name, c := range map[string]struct {
		setUp plan.SetUp
		want  string
		works bool // for one request
	}{
		"it adds the same reconciler": {
			func(_ context.Context, mgr ctrl.Manager) error {
				shared.Client = mgr.GetClient()
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(shared)
			},
			"set-up adds the reconciler of configmap to several managers, it must make a new one",
			false, // it has the client of another manager
		},
		"it panics": {
			func(ctx context.Context, mgr ctrl.Manager) error {
				if calls++; calls > 1 {
					panic("registered already")
				}
				return setUp(ctx, mgr)
			},
			"panic: registered already (in plan_test.",
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			planner, err := plan.New(t.Context(), newCluster(), c.setUp, plan.Options{Parallel: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer planner.Close()
			err = planner.Each(t.Context(), plan.Selection{}, func(*plan.Plan) error { return nil })
			wantError(t, c.want, err)
			wantError(t, "it was called again for parallel plans, --parallel=1 or Options.Parallel disables them", err)
			one := plan.Selection{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "default", Name: "one"}
			err = planner.Each(t.Context(), one, func(*plan.Plan) error { return nil })
			if works := err == nil; works != c.works {
				t.Errorf("error %v of one request, which needs no other set-up", err)
			}
		})
	}
}

// Does the error of a function end parallel plans?
func TestPlanner_ParallelStops(t *testing.T) {
	planner, err := plan.New(t.Context(), newCluster(), setUp, plan.Options{Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Close()
	stop := errors.New("stop")
	for range 100 {
		n := 0
		err = planner.Each(t.Context(), plan.Selection{}, func(*plan.Plan) error { n++; return stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Fatalf("error %v after %d plans, want that of the function after the first", err, n)
		}
	}
}
