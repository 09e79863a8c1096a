// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// region recipes-foreground
const accountFinalizer = "demo.trueup.dev/account"

// AccountReconciler closes the account of a site with the password in a child. The child also has the finalizer, so it
// exists until the account is closed.
func AccountReconciler(
	closeAccount func(ctx context.Context, password string) error,
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.WithFinalizer[*websitev1.Website]{
		Finalizer: accountFinalizer,
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			&reconcilers.ChildReconciler[*websitev1.Website, *corev1.Secret, *corev1.SecretList]{
				Name: "Password",
				DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.Secret, error) {
					return &corev1.Secret{
						ObjectMeta: metav1.ObjectMeta{
							Namespace: site.Namespace, Name: site.Name + "-account",
							Finalizers: []string{accountFinalizer},
						},
						Data: map[string][]byte{"password": []byte("open sesame")},
					}, nil
				},
				MergeBeforeUpdate: func(_, _ *corev1.Secret) {}, // it never changes
				ReflectChildStatusOnParentWithError: func(
					_ context.Context, _ *websitev1.Website, _ *corev1.Secret, err error,
				) error {
					return err
				},
			},
			&reconcilers.SyncReconciler[*websitev1.Website]{
				Name: "Account",
				Sync: func(context.Context, *websitev1.Website) error { return nil }, // opens the account
				Finalize: func(ctx context.Context, site *websitev1.Website) error {
					secret := &corev1.Secret{}
					key := client.ObjectKey{Namespace: site.Namespace, Name: site.Name + "-account"}
					err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, secret)
					if apierrs.IsNotFound(err) {
						return nil // already cleaned up
					}
					if err != nil {
						return err
					}
					if err := closeAccount(ctx, string(secret.Data["password"])); err != nil {
						return err
					}
					return reconcilers.ClearFinalizer(ctx, secret, accountFinalizer)
				},
			},
		},
	}
}

// endregion

// The garbage collector of a real control plane deletes the child first, and Finalize still finds it.
func TestRecipe_ForegroundDeletion(t *testing.T) {
	env := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
	api, err := client.New(env.RESTConfig(), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan string, 10)
	startAccounts(t, env, func(ctx context.Context, password string) error {
		secret := &corev1.Secret{}
		if err := api.Get(ctx, client.ObjectKey{Namespace: env.Namespace, Name: "bakery-account"}, secret); err != nil {
			return err
		}
		if secret.DeletionTimestamp.IsZero() {
			return errors.New("the garbage collector has not deleted the child yet")
		}
		closed <- password
		return nil
	})
	site := newSite()
	site.ObjectMeta = metav1.ObjectMeta{Namespace: env.Namespace, Name: "bakery"}
	if err := api.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: env.Namespace, Name: "bakery-account"}
	eventually(t, "the account has a password", func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, key, secret)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err := api.Delete(t.Context(), site, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	for what, object := range map[string]client.Object{"the site goes": site, "the child goes": secret} {
		eventually(t, what, func(ctx context.Context) (bool, error) {
			err := api.Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrs.IsNotFound(err), client.IgnoreNotFound(err)
		})
	}
	select {
	case password := <-closed:
		if password != "open sesame" {
			t.Errorf("closed with password %q", password)
		}
	default:
		t.Error("the site no longer exists, but the account was not closed")
	}
}

// startAccounts runs a controller with AccountReconciler until the test ends.
func startAccounts(t *testing.T, env *sandbox.Env, closeAccount func(context.Context, string) error) {
	t.Helper()
	mgr, err := ctrl.NewManager(env.RESTConfig(), ctrl.Options{
		Scheme:     newScheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{env.Namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := &reconcilers.ResourceReconciler[*websitev1.Website]{
		Name:       "Account",
		Reconciler: AccountReconciler(closeAccount),
		Config:     reconcilers.NewConfig(mgr, &websitev1.Website{}, 10*time.Hour),
	}
	if err := root.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}
