// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	"trueup.dev/observe"
	"trueup.dev/reconcilers"
)

func ExampleCheck() {
	g := graph.Of(&reconcilers.ResourceReconciler[*corev1.Namespace]{
		SkipStatusUpdate: true, Config: inMemory(),
		Reconciler: &reconcilers.SyncReconciler[*corev1.Namespace]{
			Sync:     func(context.Context, *corev1.Namespace) error { return nil },
			Describe: func(n *graph.Node) { n.Needs(&corev1.ResourceQuota{}, "", "create") },
		},
	})
	declared, err := rbac.Declared(g, rbac.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(declared.Markers())
	role := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"*"}},
	}
	fmt.Print(rbac.Check(role, declared, nil))
	// Output:
	// // +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
	// // +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
	// // +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=create
	// not granted: create resourcequotas
	// granted but neither declared nor used: delete namespaces
}

// The recorder collects what the controllers of a manager need.
func ExampleRecorder_Listener() {
	recorder := &rbac.Recorder{}
	setUp := func(mgr manager.Manager) {
		observe.Of(mgr).Add(recorder.Listener(mgr.GetRESTMapper()))
	}
	_ = setUp
	fmt.Print(recorder.Used().Markers())
	// Output:
}
