// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/examples/website/dns"
	"trueup.dev/reconcilers"
)

// region finalizers-with
func RecordReconciler(records dns.Provider) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.WithFinalizer[*websitev1.Website]{
		Finalizer: "demo.trueup.dev/dns-record", // unique, and never renamed
		Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
			Name: "Record",
			Sync: func(ctx context.Context, site *websitev1.Website) error {
				return records.Publish(ctx, dns.Record{Name: site.Spec.Domain, Target: "192.0.2.1", Owner: site.Name})
			},
			Finalize: func(ctx context.Context, site *websitev1.Website) error {
				return records.Withdraw(ctx, site.Name) // an error keeps the finalizer, and is retried
			},
		},
	}
}

// endregion

// printedRecords prints the calls. It does not implement lookups.
type printedRecords struct{ dns.Provider }

func (printedRecords) Publish(_ context.Context, r dns.Record) error {
	fmt.Println("publish", r.Name)
	return nil
}

func (printedRecords) Withdraw(_ context.Context, owner string) error {
	fmt.Println("withdraw the records of", owner)
	return nil
}

func Example_finalizer() {
	cluster := newCluster(newSite())
	reconcileOnce(cluster, RecordReconciler(printedRecords{}))
	if err := cluster.Delete(context.Background(), newSite()); err != nil {
		fmt.Println(err)
	}
	reconcileOnce(cluster, RecordReconciler(printedRecords{}))
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/dns-record"
	// publish bakery.example.com
	// withdraw the records of bakery
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/dns-record"
}

const checkJobsAgain = 10 * time.Second

// region finalizers-ready
var remainingStasher = reconcilers.NewStasher[int]("remaining-jobs")

func JobsReconciler(
	stop func(ctx context.Context, owner string) (remaining int, err error),
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.WithFinalizer[*websitev1.Website]{
		Finalizer: "demo.trueup.dev/jobs",
		ReadyToClearFinalizer: func(ctx context.Context, _ *websitev1.Website) bool {
			return remainingStasher.RetrieveOrEmpty(ctx) == 0
		},
		Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
			Sync: func(context.Context, *websitev1.Website) error { return nil },
			FinalizeWithResult: func(ctx context.Context, site *websitev1.Website) (reconcilers.Result, error) {
				remaining, err := stop(ctx, site.Name)
				if err != nil || remaining == 0 {
					return reconcilers.Result{}, err
				}
				remainingStasher.Store(ctx, remaining)
				return reconcilers.Result{RequeueAfter: checkJobsAgain}, nil // no event triggers a reconcile
			},
		},
	}
}

// endregion

func Example_readyToClearFinalizer() {
	left := 2
	r := JobsReconciler(func(context.Context, string) (int, error) {
		left--
		return left, nil
	})
	cluster := newCluster(newSite())
	reconcileOnce(cluster, r)
	if err := cluster.Delete(context.Background(), newSite()); err != nil {
		fmt.Println(err)
	}
	reconcileOnce(cluster, r)
	reconcileOnce(cluster, r)
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/jobs"
	// again in 10s
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/jobs"
}

// region finalizers-order
func AccountFirst(
	closeAccount func(ctx context.Context, password string) (closed bool, err error),
) reconcilers.Sequence[*websitev1.Website] {
	return reconcilers.Sequence[*websitev1.Website]{
		&reconcilers.SyncReconciler[*websitev1.Website]{
			Name: "Account",
			Sync: func(context.Context, *websitev1.Website) error { return nil }, // the account is opened elsewhere
			FinalizeWithResult: func(ctx context.Context, site *websitev1.Website) (reconcilers.Result, error) {
				secret := &corev1.Secret{}
				if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, client.ObjectKeyFromObject(site), secret); err != nil {
					return reconcilers.Result{}, client.IgnoreNotFound(err) // the account is already closed
				}
				closed, err := closeAccount(ctx, string(secret.Data["password"]))
				if err != nil || closed {
					return reconcilers.Result{}, err
				}
				return reconcilers.Result{RequeueAfter: checkJobsAgain}, reconcilers.ErrHaltSubReconcilers // keeps the Secret
			},
		},
		AccountPasswordReconciler(),
	}
}

// endregion

// AccountPasswordReconciler is a child that AccountFirst needs.
func AccountPasswordReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.Secret, *corev1.SecretList]{
		Name: "Password",
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.Secret, error) {
			secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("open sesame")}}
			secret.Namespace, secret.Name = site.Namespace, site.Name
			return secret, nil
		},
		MergeBeforeUpdate: func(_, _ *corev1.Secret) {}, // it never changes
		ReflectChildStatusOnParentWithError: func(
			_ context.Context, _ *websitev1.Website, _ *corev1.Secret, err error,
		) error {
			return err
		},
	}
}

// The first reconcile after the deletion keeps the Secret, the second one deletes it.
func Example_finalizeBeforeChildrenAreDeleted() {
	passes := 0
	r := &reconcilers.WithFinalizer[*websitev1.Website]{
		Finalizer: "demo.trueup.dev/account",
		Reconciler: AccountFirst(func(_ context.Context, password string) (bool, error) {
			passes++
			fmt.Println("close the account with", password)
			return passes > 1, nil
		}),
	}
	cluster := newCluster(newSite())
	reconcileOnce(cluster, r)
	if err := cluster.Delete(context.Background(), newSite()); err != nil {
		fmt.Println(err)
	}
	reconcileOnce(cluster, r)
	reconcileOnce(cluster, r)
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/account"
	// event: Normal Created: Created Secret "bakery"
	// close the account with open sesame
	// close the account with open sesame
	// event: Normal Deleted: Deleted Secret "bakery"
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/account"
}

func Example_addFinalizer() {
	r := &reconcilers.SyncReconciler[*websitev1.Website]{
		// region finalizers-by-hand
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			if site.Spec.ThemeRef == nil {
				return nil // no external object, no finalizer
			}
			return reconcilers.AddFinalizer(ctx, site, "demo.trueup.dev/theme")
		},
		Finalize: func(ctx context.Context, site *websitev1.Website) error {
			return reconcilers.ClearFinalizer(ctx, site, "demo.trueup.dev/theme")
		},
		// endregion
	}
	site := newSite()
	site.Spec.ThemeRef = &websitev1.ThemeReference{Name: "paper"}
	reconcileOnce(newCluster(newSite()), r)
	reconcileOnce(newCluster(site), r)
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/theme"
}

func Example_clearFinalizerOfAnotherObject() {
	r := &reconcilers.SyncReconciler[*websitev1.Website]{
		// region finalizers-other
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			// An earlier version of this controller kept the theme.
			theme := &corev1.ConfigMap{}
			key := client.ObjectKey{Namespace: site.Namespace, Name: site.Name}
			if err := reconcilers.RetrieveConfigOrDie(ctx).Get(ctx, key, theme); err != nil {
				return client.IgnoreNotFound(err)
			}
			return reconcilers.ClearFinalizer(ctx, theme, "demo.trueup.dev/theme")
		},
		// endregion
	}
	site, theme := newSite(), &corev1.ConfigMap{}
	site.Finalizers = []string{"demo.trueup.dev/theme"}
	theme.Namespace, theme.Name, theme.Finalizers = site.Namespace, site.Name, site.Finalizers
	cluster := newCluster(site, theme)
	reconcileOnce(cluster, r)
	for _, obj := range []client.Object{site, theme} {
		if err := cluster.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%T: %s\n", obj, obj.GetFinalizers())
	}
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "demo.trueup.dev/theme"
	// *v1.Website: [demo.trueup.dev/theme]
	// *v1.ConfigMap: []
}
