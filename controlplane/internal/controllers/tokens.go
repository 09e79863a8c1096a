// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	serviceaccounts "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// newTokens fills secrets of type kubernetes.io/service-account-token.
func newTokens(ctx context.Context, s setup) (runFunc, error) {
	key, err := keyutil.PrivateKeyFromFile(s.files.ServiceAccountKey)
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	rootCA, err := os.ReadFile(s.files.CACertificate)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	v1 := s.informers.Core().V1()
	c, err := serviceaccounts.NewTokensController(klog.FromContext(ctx), v1.ServiceAccounts(), v1.Secrets(), s.client,
		serviceaccounts.TokensControllerOptions{TokenGenerator: generator, RootCA: rootCA})
	if err != nil {
		return nil, err
	}
	return withWorkers(c.Run, s.settings.SAController.ConcurrentSATokenSyncs), nil
}
