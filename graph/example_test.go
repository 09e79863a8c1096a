// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"trueup.dev/graph"
	v1 "trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

func metaNamed(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// discardEvents records no events.
type discardEvents struct{}

func (discardEvents) Event(runtime.Object, string, string, string)          {}
func (discardEvents) Eventf(runtime.Object, string, string, string, ...any) {}
func (discardEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {
}

// setUp adds the controller of a program to its manager.
func setUp(ctx context.Context, mgr ctrl.Manager) error {
	return (&reconcilers.ResourceReconciler[*v1.Resource]{
		Config: reconcilers.NewConfig(mgr, nil, 10*time.Hour),
		Reconciler: &reconcilers.SyncReconciler[*v1.Resource]{
			Name: "Certificate",
			Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
				bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
				return nil
			},
			Sync: func(context.Context, *v1.Resource) error { return nil },
		},
	}).SetupWithManager(ctx, mgr)
}

// The main function of a program calls Main first. It does nothing unless the command "trueup graph" runs the program.
func ExampleMain() {
	graph.Main(v1.NewScheme(), setUp)
	fmt.Println("the program continues")
	// Output: the program continues
}

func ExampleRecord() {
	g, err := graph.Record(context.Background(), v1.NewScheme(), setUp)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(g.Text())
	// Output:
	// ResourceResourceReconciler (reconcilers.ResourceReconciler) · for Resource.fixture.trueup.dev · writes status
	// └─ Certificate (reconcilers.SyncReconciler) · tracks Secret
}

// A reconciler of the user says what its function reads.
func ExampleOf() {
	g := graph.Of(&reconcilers.SyncReconciler[*v1.Resource]{
		Name:     "Quota",
		Sync:     func(context.Context, *v1.Resource) error { return nil },
		Describe: func(n *graph.Node) { n.ReadsKind(&corev1.ResourceQuota{}) },
	})
	fmt.Print(g.Text())
	// Output: Quota (reconcilers.SyncReconciler) · reads ResourceQuota
}
