// SPDX-License-Identifier: Apache-2.0

package karpenter_test

import (
	"context"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/patrickmn/go-cache"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

func TestNodeClaimLifecycle(t *testing.T) {
	operators.Check(t, operators.Scenario{Module: module, Controller: "NodeClaim lifecycle", Converge: converge.Scenario{
		Scheme: kinds(), For: claim(), CRDs: crds(), New: newLifecycle, Indexes: index,
		Watches: []converge.Watch{{Object: &corev1.Node{}, Requests: claimOf}},
		World: []converge.Actor{
			{Name: "kubelet", For: &v1.NodeClaim{}, Act: kubelet}, {Name: "terminator", For: &corev1.Node{}, Act: terminate},
		},
		Steps: converge.Lifecycle(claim()),
	}, Finding: &operators.Finding{
		Server: "TestNodeClaimLifecycle_server",
		Oracle: converge.OracleDeletion, Cause: converge.CauseUnexpected, Observed: "An instance was created, the write of " +
			"its provider ID to the status failed, and the NodeClaim was deleted before the retry. The finalizer was removed " +
			"without a deletion of the instance. Providers may delete instances without a NodeClaim: this one does not.",
	}})
}

func claim() *v1.NodeClaim {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c.Spec.NodeClassRef = pool().Spec.Template.Spec.NodeClassRef
	c.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	return c
}

// stopJanitor ends the goroutine that removes expired entries of the cache of a controller. Its finalizer would end it
// outside of the bubble of testing/synctest, which is a fatal error.
func stopJanitor(c *lifecycle.Controller) {
	field := reflect.ValueOf(c).Elem().FieldByName("launch").Elem().FieldByName("cache")
	cached := (*cache.Cache)(field.UnsafePointer())
	runtime.SetFinalizer(cached, nil)
	stop := reflect.ValueOf(cached).Elem().FieldByName("cache").Elem().FieldByName("janitor").Elem().FieldByName("stop")
	*(*chan bool)(unsafe.Pointer(stop.UnsafeAddr())) <- true
}

// newLifecycle adds the options to the context, as the manager of karpenter does.
func newLifecycle(env converge.Env) reconcile.Reconciler {
	c := lifecycle.NewController(
		clock.RealClock{}, env.Client, provider{cloud: env.Cloud}, noEvents{}, nodepoolhealth.NewState(), nil,
	)
	stopJanitor(c)
	inner := reconcile.AsReconciler(env.Client, c)
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return inner.Reconcile(options.ToContext(ctx, &options.Options{IgnoreDRARequests: true}), req)
	})
}

func index(indexer client.FieldIndexer) error {
	return indexer.IndexField(context.Background(), &corev1.Node{}, "spec.providerID", func(o client.Object) []string {
		return []string{o.(*corev1.Node).Spec.ProviderID}
	})
}

// claimOf returns the request for the NodeClaim of a Node, which has the same name here.
func claimOf(_ context.Context, node client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: node.GetName()}}}
}

// kubelet creates a Node for each instance, and makes it ready.
func kubelet(ctx context.Context, c client.Client, obj client.Object) error {
	claim := obj.(*v1.NodeClaim)
	if claim.Status.ProviderID == "" || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}
	node.Spec.ProviderID, node.Spec.Taints = claim.Status.ProviderID, []corev1.Taint{v1.UnregisteredNoExecuteTaint}
	if err := c.Create(ctx, node); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return c.Status().Update(ctx, node)
}

// terminate removes the finalizer of a deleted Node, as karpenter's controller of terminated Nodes does.
func terminate(ctx context.Context, c client.Client, obj client.Object) error {
	if obj.GetDeletionTimestamp().IsZero() || len(obj.GetFinalizers()) == 0 {
		return nil
	}
	obj.SetFinalizers(nil)
	return c.Update(ctx, obj)
}

type noEvents struct{}

func (noEvents) Publish(...events.Event) {}
