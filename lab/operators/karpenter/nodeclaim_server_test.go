// SPDX-License-Identifier: Apache-2.0

package karpenter_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/lifecycle"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/nodepoolhealth"

	"trueup.dev/sandbox"
)

// instances is a provider that has its instances in memory.
type instances struct {
	provider

	running map[string]bool
}

func (p instances) Create(_ context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	p.running[claim.Name] = true
	created := claim.DeepCopy()
	created.Status.ProviderID = providerID(claim.Name)
	return created, nil
}

func (p instances) Delete(_ context.Context, claim *v1.NodeClaim) error {
	if !p.running[claim.Name] {
		return cloudprovider.NewNodeClaimNotFoundError(errors.New("no instance"))
	}
	delete(p.running, claim.Name)
	return nil
}

// TestNodeClaimLifecycle_server shows the finding of TestNodeClaimLifecycle with a real API server: a write of the
// status fails, and the NodeClaim is deleted before the retry. Without the failed write, the instance is deleted.
func TestNodeClaimLifecycle_server(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	definitions := []any{}
	for _, crd := range crds() {
		definitions = append(definitions, crd)
	}
	env := sandbox.ForTest(t, sandbox.TestOptions{
		Options: sandbox.Options{Controllers: []string{"none"}, DisablePods: true}, CRDs: definitions,
	})
	config := env.RESTConfig()
	server, err := client.NewWithWatch(config, client.Options{Scheme: kinds()})
	if err != nil {
		t.Fatal(err)
	}
	for name, fails := range map[string]bool{"no-fault": false, "failed-write": true} {
		t.Run(name, func(t *testing.T) {
			failed := false
			c := interceptor.NewClient(server, interceptor.Funcs{SubResourcePatch: func(
				ctx context.Context, inner client.Client, sub string, obj client.Object, patch client.Patch,
				opts ...client.SubResourcePatchOption,
			) error {
				if fails && !failed {
					failed = true
					return apierrors.NewInternalError(errors.New("injected"))
				}
				return inner.SubResource(sub).Patch(ctx, obj, patch, opts...)
			}, List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*corev1.NodeList); ok {
					return nil // there are no Nodes, and the server does not have the index of karpenter's cache
				}
				return inner.List(ctx, list, opts...)
			}})
			cloud := instances{running: map[string]bool{}}
			controller := lifecycle.NewController(
				clock.RealClock{}, c, cloud, noEvents{}, nodepoolhealth.NewState(), nil,
			)
			node := claim()
			node.Name = name
			if err := server.Create(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			ctx := options.ToContext(t.Context(), &options.Options{IgnoreDRARequests: true})
			key := client.ObjectKeyFromObject(node)
			reconcileNow := func() error {
				_, err := reconcile.AsReconciler(c, controller).Reconcile(ctx, reconcile.Request{NamespacedName: key})
				return err
			}
			if err := reconcileNow(); (err != nil) != fails || !cloud.running[name] {
				t.Fatalf("the first reconcile: %v; instances: %v", err, cloud.running)
			}
			if err := server.Delete(t.Context(), node); err != nil {
				t.Fatal(err)
			}
			exists := func() bool {
				err := server.Get(t.Context(), key, &v1.NodeClaim{})
				if client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				return err == nil
			}
			for n := 0; exists() && n < 5; n++ {
				if err := reconcileNow(); err != nil {
					t.Fatal(err)
				}
			}
			if exists() || cloud.running[name] != fails {
				t.Errorf("the NodeClaim exists: %t; the instance exists: %t, want %t", exists(), cloud.running[name], fails)
			}
		})
	}
}
