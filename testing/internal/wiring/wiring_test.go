// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
)

func TestObserve(t *testing.T) {
	setUp := func(ctx context.Context, mgr ctrl.Manager, _ reconcilers.Config) error {
		there, err := OtherCluster(mgr, "remote")
		if err != nil {
			return err
		}
		none := func(client.Object) []string { return nil }
		return errors.Join(
			there.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", none),
			mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "spec.nodeName", none),
			ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
				Owns(&appsv1.ReplicaSet{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
				WithOptions(controller.Options{MaxConcurrentReconciles: 3}).
				Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					t.Error("the reconciler was called")
					return reconcile.Result{}, nil
				})),
		)
	}
	got, err := Observe(t.Context(), clientgoscheme.Scheme, nil, setUp)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Controllers) != 1 {
		t.Fatalf("got %d controllers", len(got.Controllers))
	}
	if n := got.Controllers[0].Options.MaxConcurrentReconciles; n != 3 {
		t.Errorf("MaxConcurrentReconciles %d", n)
	}
	want := &Wiring{
		Controllers: []Controller{{
			For: []Watch{{Object: &appsv1.Deployment{}}},
			Owns: []Watch{{
				Object:  &appsv1.ReplicaSet{},
				Ignores: []Change{StatusChanged, LabelsChanged, AnnotationsChanged, Resynced},
			}},
			Notes: []string{},
		}},
		Indexes: []Index{
			{Object: &corev1.Pod{}, Field: "spec.nodeName"},
			{Object: &corev1.Pod{}, Field: "spec.nodeName", Cluster: "remote"},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Controller{}, "Options")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each change has the event and the metadata that the change of an object has in a cluster.
func TestChanges(t *testing.T) {
	var got []string
	describe := func(event string, obj any) {
		o := obj.(*appsv1.Deployment)
		parts := []string{event, "version " + o.ResourceVersion, "generation " + string(rune('0'+o.Generation))}
		if o.Labels != nil {
			parts = append(parts, "labels")
		}
		if o.Annotations != nil {
			parts = append(parts, "annotations")
		}
		if o.DeletionTimestamp != nil {
			parts = append(parts, "deleting")
		}
		got = append(got, strings.Join(parts, ", "))
	}
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { describe("add", obj) },
		UpdateFunc: func(_, obj any) { describe("update", obj) },
		DeleteFunc: func(obj any) { describe("delete", obj) },
	}
	for _, change := range Changes {
		change.deliver(
			handler, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Generation: 1}}, true,
		)
	}
	want := []string{
		"add, version 1, generation 1",
		"update, version 10, generation 2",
		"update, version 10, generation 1",
		"update, version 10, generation 1, labels",
		"update, version 10, generation 1, annotations",
		"update, version 1, generation 1",
		"update, version 10, generation 2, deleting",
		"delete, version 1, generation 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
