// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
)

// expiryReconciler deletes secrets that are too old.
func expiryReconciler(c reconcilers.Config) *reconcilers.ResourceReconciler[*corev1.Secret] {
	const lifetime = 24 * time.Hour
	return &reconcilers.ResourceReconciler[*corev1.Secret]{
		Reconciler: &reconcilers.SyncReconciler[*corev1.Secret]{
			SyncWithResult: func(ctx context.Context, secret *corev1.Secret) (reconcilers.Result, error) {
				expires := secret.CreationTimestamp.Add(lifetime)
				if now := rtime.RetrieveNow(ctx); now.Before(expires) {
					return reconcilers.Result{RequeueAfter: expires.Sub(now)}, nil
				}
				return reconcilers.Result{}, reconcilers.RetrieveConfigOrDie(ctx).Delete(ctx, secret)
			},
		},
		Config: c,
	}
}

// testExpiry would be named TestExpiry if it were not an example.
func testExpiry(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "token", CreationTimestamp: metav1.NewTime(now.Add(-25 * time.Hour)),
	}}
	request := reconcilers.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "token"}}
	deleted := []rtesting.DeleteRef{{Kind: "Secret", Namespace: "default", Name: "token"}}

	rtesting.ReconcilerTestSuite{
		{
			Name:    "young secrets are left alone until they are old",
			Request: request,
			Now:     now,
			GivenObjects: []client.Object{rtesting.With(secret, func(s *corev1.Secret) {
				s.CreationTimestamp = metav1.NewTime(now.Add(-23 * time.Hour))
			})},
			ExpectedResult: reconcilers.Result{RequeueAfter: time.Hour},
		},
		{
			Name:          "old secrets are deleted",
			Request:       request,
			Now:           now,
			GivenObjects:  []client.Object{secret},
			ExpectDeletes: deleted,
		},
		{
			Name:         "an API that does not answer is asked again",
			Request:      request,
			Now:          now,
			GivenObjects: []client.Object{secret},
			WithReactors: []rtesting.ReactionFunc{
				rtesting.InduceFailure("delete", "Secret", rtesting.InduceFailureOpts{Error: errors.New("timeout")}),
			},
			// Calls that fail are observed too.
			ExpectDeletes: deleted,
			ShouldErr:     true,
			Verify: func(t *testing.T, _ reconcilers.Result, err error) {
				if !strings.Contains(err.Error(), "timeout") {
					t.Errorf("the cause is missing in %q", err)
				}
			},
		},
	}.Run(t, clientgoscheme.Scheme, func(
		_ *testing.T, _ *rtesting.ReconcilerTestCase, c reconcilers.Config,
	) reconcile.Reconciler {
		return expiryReconciler(c)
	})
}

func ExampleReconcilerTestSuite() {
	var t *testing.T // of your own test function
	testExpiry(t)
}
