// SPDX-License-Identifier: Apache-2.0

package clusterapi_test

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"trueup.dev/lab/operators"
)

const module = "sigs.k8s.io/cluster-api"

func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(errors.Join(
		corev1.AddToScheme(s), addonsv1.AddToScheme(s), clusterv1.AddToScheme(s), apiextensionsv1.AddToScheme(s),
	))
	return s
}

func crds(more ...client.Object) []client.Object {
	return append(operators.CRDsOrDie(module, "core/config/crd/bases"), more...)
}

// cluster returns a Cluster that can be connected to.
func cluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "c", Labels: map[string]string{"cni": "yes"},
	}}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "c.example.com", Port: 6443}
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized",
		LastTransitionTime: metav1.Now(),
	}}
	return c
}

// processContext returns a context that ends with the process of a manager.
func processContext(mgr manager.Manager) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	if err := mgr.Add(manager.RunnableFunc(func(running context.Context) error {
		<-running.Done()
		cancel()
		return nil
	})); err != nil {
		panic(err)
	}
	return ctx
}
