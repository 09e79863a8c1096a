// SPDX-License-Identifier: Apache-2.0

// Package factories makes Processors for tests.
package factories

import (
	"fmt"

	"github.com/vmware-labs/reconciler-runtime/apis"
	rtesting "github.com/vmware-labs/reconciler-runtime/testing"
	"github.com/vmware-labs/reconciler-runtime/testing/factories"

	"example.com/streaming/api/v1alpha1"
)

type processor struct {
	target *v1alpha1.Processor
}

var (
	_ rtesting.Factory = (*processor)(nil)
)

// Processor makes a Processor.
func Processor(seed ...*v1alpha1.Processor) *processor {
	var target *v1alpha1.Processor
	switch len(seed) {
	case 0:
		target = &v1alpha1.Processor{}
	case 1:
		target = seed[0]
	default:
		panic(fmt.Errorf("expected exactly zero or one seed, got %v", seed))
	}
	return &processor{
		target: target,
	}
}

func (f *processor) deepCopy() *processor {
	return Processor(f.target.DeepCopy())
}

func (f *processor) Create() *v1alpha1.Processor {
	return f.deepCopy().target
}

func (f *processor) CreateObject() apis.Object {
	return f.Create()
}

func (f *processor) mutation(m func(*v1alpha1.Processor)) *processor {
	f = f.deepCopy()
	m(f.target)
	return f
}

func (f *processor) NamespaceName(namespace, name string) *processor {
	return f.mutation(func(p *v1alpha1.Processor) {
		p.ObjectMeta.Namespace = namespace
		p.ObjectMeta.Name = name
	})
}

func (f *processor) Image(image string) *processor {
	return f.mutation(func(p *v1alpha1.Processor) {
		p.Spec.Image = image
	})
}

func (f *processor) Inputs(inputs ...string) *processor {
	return f.mutation(func(p *v1alpha1.Processor) {
		p.Spec.Inputs = inputs
	})
}

func (f *processor) StatusConditions(conditions ...*factories.ConditionFactory) *processor {
	return f.mutation(func(p *v1alpha1.Processor) {
		c := make([]apis.Condition, len(conditions))
		for i, cg := range conditions {
			c[i] = cg.Create()
		}
		p.Status.Conditions = c
	})
}

func (f *processor) StatusDeploymentRef(name string) *processor {
	return f.mutation(func(p *v1alpha1.Processor) {
		p.Status.DeploymentRef = name
	})
}
