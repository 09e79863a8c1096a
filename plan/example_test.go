// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/external"
	"trueup.dev/plan"
)

// mirror copies the data of ConfigMaps into Secrets.
type mirror struct{ client.Client }

func (m *mirror) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	from, to := &corev1.ConfigMap{}, &corev1.Secret{}
	if err := m.Get(ctx, request.NamespacedName, from); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	to.Namespace, to.Name = from.Namespace, from.Name
	_, err := ctrl.CreateOrUpdate(ctx, m, to, func() error {
		to.StringData = from.Data
		return nil
	})
	if external.Announce(ctx, "report %s", from.Name) {
		return reconcile.Result{}, err
	}
	fmt.Println("reporting", from.Name) // does not happen in a plan
	return reconcile.Result{}, err
}

func setUp(_ context.Context, mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&mirror{mgr.GetClient()})
}

func given(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Data:       map[string]string{"a": "1"},
	}
}

func newCluster() client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(given("one"), given("two"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}).Build()
}

func ExampleRun() {
	cluster := newCluster() // or the client of a real API server
	made, err := plan.Run(context.Background(), cluster, setUp, plan.Request{Namespace: "default", Name: "one"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(made.Text())
	// Output:
	// + Secret default/one
	//     stringData[a] = •••
	// * outside of Kubernetes: report one
	// Plan: 1 to create, nothing to delete, 1 outside of Kubernetes.
}

func ExamplePlanner_Each() {
	ctx := context.Background()
	planner, err := plan.New(ctx, newCluster(), setUp, plan.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer planner.Close()
	var summary plan.Summary
	err = planner.Each(ctx, plan.Selection{}, func(p *plan.Plan) error {
		fmt.Println(p.Requests[0].Name, "-", p.Sum())
		summary.Add(p)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(summary.Text())
	// Output:
	// one - Plan: 1 to create, nothing to delete, 1 outside of Kubernetes.
	// two - Plan: 1 to create, nothing to delete, 1 outside of Kubernetes.
	// + 2 × Secret, for example default/one
	// * 1 × outside of Kubernetes: report one
	// * 1 × outside of Kubernetes: report two
	// Planned requests: 2, with changes: 2, with errors: 0. Nothing is deleted.
}

func ExampleMain() {
	// In the main function, before the program connects to a cluster:
	plan.Main(clientgoscheme.Scheme, setUp)
}
