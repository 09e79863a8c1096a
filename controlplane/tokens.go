// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"os"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	serviceaccounts "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// tokenController fills secrets of type kubernetes.io/service-account-token. kube-controller-manager builds it
// separately, with code that its package does not export.
type tokenController struct {
	*serviceaccounts.TokensController
	workers int
}

func newTokenController(ctx context.Context, c kcm.ControllerContext) (*tokenController, error) {
	settings := c.ComponentConfig.SAController
	key, err := keyutil.PrivateKeyFromFile(settings.ServiceAccountKeyFile)
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	rootCA, err := os.ReadFile(settings.RootCAFile)
	if err != nil {
		return nil, err
	}
	client, err := c.NewClient("tokens-controller")
	if err != nil {
		return nil, err
	}
	controller, err := serviceaccounts.NewTokensController(
		klog.FromContext(ctx), c.InformerFactory.Core().V1().ServiceAccounts(), c.InformerFactory.Core().V1().Secrets(),
		client, serviceaccounts.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA},
	)
	if err != nil {
		return nil, err
	}
	return &tokenController{TokensController: controller, workers: int(settings.ConcurrentSATokenSyncs)}, nil
}

// Name returns the controller's name in kube-controller-manager.
func (t *tokenController) Name() string { return names.ServiceAccountTokenController }

// Run returns when ctx is done and all goroutines have ended.
func (t *tokenController) Run(ctx context.Context) { t.TokensController.Run(ctx, t.workers) }
