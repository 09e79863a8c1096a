// SPDX-License-Identifier: Apache-2.0

package karpenter_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/nodepool/hash"
	"sigs.k8s.io/karpenter/pkg/controllers/nodepool/readiness"
	"sigs.k8s.io/karpenter/pkg/controllers/nodepool/registrationhealth"
	"sigs.k8s.io/karpenter/pkg/controllers/nodepool/validation"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"
	testv1 "sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

// controller is a controller of karpenter.
type controller interface {
	Register(context.Context, manager.Manager) error
}

// nodePool returns a scenario in which users create, change and delete a NodePool, and its NodeClass becomes ready.
func nodePool(name string, newController func(manager.Manager) controller) operators.Scenario {
	return operators.Scenario{Module: module, Controller: name, Converge: converge.Scenario{
		Scheme: kinds(), For: pool(), CRDs: crds(),
		Setup: func(mgr manager.Manager) error {
			ctx := options.ToContext(context.Background(), &options.Options{CPURequests: 1000})
			return errors.Join(indexPools(ctx, mgr.GetFieldIndexer()), newController(mgr).Register(ctx, mgr))
		},
		Given: []client.Object{class()},
		Steps: converge.Steps(
			converge.Apply(pool()), converge.Settle(), converge.Do("make the NodeClass ready", makeReady), converge.Settle(),
			converge.Change(pool(), func(p *v1.NodePool) { p.Spec.Template.Labels = labels }), converge.Settle(),
			converge.Delete(pool()), converge.Settle(),
		),
		// The message of Ready lists the conditions in the order of their last transitions.
		Masks: []converge.Mask{{Object: pool(), Field: "status.conditions.message"}},
	}}
}

var labels = map[string]string{"team": "b"}

func pool() *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: testv1.Group, Kind: "TestNodeClass", Name: "class"}
	p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	return p
}

func class() *testv1.TestNodeClass {
	return &testv1.TestNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}}
}

// makeReady does what the controller of the provider does.
func makeReady(ctx context.Context, c client.Client) error {
	current := class()
	if err := c.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
		return err
	}
	current.StatusConditions().SetTrue("Ready")
	return c.Status().Update(ctx, current)
}

// indexPools adds the indexes of NodePools that karpenter's manager has.
func indexPools(ctx context.Context, indexer client.FieldIndexer) error {
	index := func(field string, value func(*v1.NodeClassReference) string) error {
		return indexer.IndexField(ctx, pool(), "spec.template.spec.nodeClassRef."+field, func(o client.Object) []string {
			return []string{value(o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)}
		})
	}
	return errors.Join(
		index("group", func(ref *v1.NodeClassReference) string { return ref.Group }),
		index("kind", func(ref *v1.NodeClassReference) string { return ref.Kind }),
		index("name", func(ref *v1.NodeClassReference) string { return ref.Name }),
	)
}

func TestNodePoolHash(t *testing.T) {
	operators.Check(t, nodePool("NodePool hash", func(mgr manager.Manager) controller {
		return hash.NewController(mgr.GetClient(), provider{})
	}))
}

func TestNodePoolReadiness(t *testing.T) {
	operators.Check(t, nodePool("NodePool readiness", func(mgr manager.Manager) controller {
		return readiness.NewController(clock.RealClock{}, mgr.GetClient(), provider{})
	}))
}

func TestNodePoolValidation(t *testing.T) {
	operators.Check(t, nodePool("NodePool validation", func(mgr manager.Manager) controller {
		return validation.NewController(clock.RealClock{}, mgr.GetClient(), provider{})
	}))
}

func TestNodePoolRegistrationHealth(t *testing.T) {
	operators.Check(t, nodePool("NodePool registration health", func(mgr manager.Manager) controller {
		return registrationhealth.NewController(clock.RealClock{}, mgr.GetClient(), provider{}, nodepoolhealth.NewState())
	}))
}
