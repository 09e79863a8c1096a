// SPDX-License-Identifier: Apache-2.0

package karpenter_test

import (
	"context"
	"errors"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	testv1 "sigs.k8s.io/karpenter/pkg/test/v1alpha1"

	"trueup.dev/converge"
	"trueup.dev/lab/operators"
)

const module = "sigs.k8s.io/karpenter"

// kinds is the Scheme of client-go, where the packages of karpenter register their kinds.
func kinds() *runtime.Scheme { return scheme.Scheme }

func crds() []client.Object {
	return operators.CRDsOrDie(module, "pkg/apis/crds", "pkg/test/v1alpha1/crds")
}

// provider makes instances in the cloud of a scenario. A call for a NodeClaim that has an instance returns this one.
type provider struct {
	cloudprovider.CloudProvider

	cloud converge.Cloud
}

func (provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&testv1.TestNodeClass{}}
}

func (p provider) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	if err := p.cloud.Create(ctx, claim.Name, "running"); err != nil && !errors.Is(err, converge.ErrExists) {
		return nil, err
	}
	created := claim.DeepCopy()
	created.Status.ProviderID = providerID(claim.Name)
	return created, nil
}

func (p provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	err := p.cloud.Delete(ctx, claim.Name)
	if errors.Is(err, converge.ErrAbsent) {
		return cloudprovider.NewNodeClaimNotFoundError(err)
	}
	return err
}

func providerID(name string) string { return "fake://" + name }
