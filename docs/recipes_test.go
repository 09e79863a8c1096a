// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/readiness"
	"trueup.dev/reconcilers"
)

// region recipes-secret
// PasswordReconciler gives each site a permanent password. In a program, generate is rand.Text of crypto/rand.
func PasswordReconciler(generate func() string) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.Secret, *corev1.SecretList]{
		Name: "Password",
		OurChild: func(site *websitev1.Website, secret *corev1.Secret) bool {
			return secret.Name == site.Name+"-password"
		},
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.Secret, error) {
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-password"},
				Data:       map[string][]byte{"password": []byte(generate())}, // used only when the Secret is created
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) {
			if len(current.Data["password"]) == 0 {
				current.Data = desired.Data
			}
		},
		ReflectChildStatusOnParentWithError: func(
			ctx context.Context, site *websitev1.Website, _ *corev1.Secret, err error,
		) error {
			if err != nil { // the name is in use, or the API server rejects the Secret
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
				return reconcilers.ErrHaltSubReconcilers
			}
			return nil
		},
	}
}

// endregion

func Example_recipeSecret() {
	passwords := []string{"first", "second"}
	r := PasswordReconciler(func() (next string) {
		next, passwords = passwords[0], passwords[1:]
		return next
	})
	cluster := newCluster(newSite())
	reconcileOnce(cluster, r)
	reconcileOnce(cluster, r)
	secret := &corev1.Secret{}
	if err := cluster.Get(
		context.Background(), client.ObjectKey{Namespace: "default", Name: "bakery-password"}, secret,
	); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("password: %s\n", secret.Data["password"])
	// Output:
	// event: Normal Created: Created Secret "bakery-password"
	// password: first
}

// region recipes-ready
// RolloutReconciler runs the web servers. Later reconcilers in a Sequence do not run before they are ready.
func RolloutReconciler(
	desired func(*websitev1.Website) *appsv1.Deployment,
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *appsv1.Deployment, *appsv1.DeploymentList]{
		Name: "Rollout",
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*appsv1.Deployment, error) {
			return desired(site), nil
		},
		MergeBeforeUpdate: func(current, desired *appsv1.Deployment) {
			current.Spec.Replicas, current.Spec.Template = desired.Spec.Replicas, desired.Spec.Template
		},
		ReflectChildStatusOnParentWithError: func(
			ctx context.Context, site *websitev1.Website, child *appsv1.Deployment, err error,
		) error {
			conditions := site.Status.ConditionManager(ctx)
			switch {
			case err != nil:
				conditions.MarkFalse(websitev1.ConditionDeploymentReady, string(apierrs.ReasonForError(err)), "%s", err)
			case readiness.Of(child).IsReady():
				conditions.MarkTrue(websitev1.ConditionDeploymentReady, "RolledOut", "")
				return nil
			default:
				rollout := readiness.Of(child) // for example: 1 of 2 replicas are available
				conditions.MarkUnknown(websitev1.ConditionDeploymentReady, rollout.Reason, "%s", rollout.Message)
			}
			return reconcilers.ErrHaltSubReconcilers
		},
	}
}

// endregion

func Example_recipeReady() {
	replicas, status := int32(2), appsv1.DeploymentStatus{}
	site := newSite()
	deployment := func(*websitev1.Website) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bakery", Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		}
	}
	existing := func() *appsv1.Deployment {
		d := deployment(site)
		d.OwnerReferences = []metav1.OwnerReference{
			*metav1.NewControllerRef(site, websitev1.GroupVersion.WithKind("Website")),
		}
		d.CreationTimestamp = metav1.Unix(1, 0)
		d.Status = status
		return d
	}
	for _, status = range []appsv1.DeploymentStatus{
		{ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2},
		{ObservedGeneration: 2, Replicas: 2, AvailableReplicas: 1, UpdatedReplicas: 2},
		{ObservedGeneration: 2, Replicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2},
	} {
		reconcileOnce(newCluster(site, existing()), reconcilers.Sequence[*websitev1.Website]{
			RolloutReconciler(deployment),
			&reconcilers.SyncReconciler[*websitev1.Website]{
				Name: "Announce",
				Sync: func(context.Context, *websitev1.Website) error {
					fmt.Printf("generation %d is available\n", status.ObservedGeneration)
					return nil
				},
			},
		})
	}
	// Output:
	// generation 2 is available
}

// region recipes-reference
// CertificateReconciler reads the Secret with the certificate of a site, which another controller writes.
func CertificateReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Certificate",
		Setup: func(ctx context.Context, _ reconcilers.Manager, bldr *reconcilers.Builder) error {
			bldr.Watches(&corev1.Secret{}, reconcilers.EnqueueTracked(ctx))
			return nil
		},
		Sync: func(ctx context.Context, site *websitev1.Website) error {
			secret := &corev1.Secret{}
			key := client.ObjectKey{Namespace: site.Namespace, Name: site.Name + "-tls"}
			err := reconcilers.RetrieveConfigOrDie(ctx).TrackAndGet(ctx, key, secret)
			switch {
			case apierrs.IsNotFound(err):
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, "CertificateNotFound", "Secret %q does not exist", key.Name,
				)
				return reconcilers.ErrHaltSubReconcilers
			case err != nil:
				return err
			case len(secret.Data[corev1.TLSCertKey]) == 0:
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, "CertificateInvalid", "Secret %q has no %s", key.Name, corev1.TLSCertKey,
				)
				return reconcilers.ErrHaltSubReconcilers
			}
			certificateStasher.Store(ctx, secret)
			return nil
		},
	}
}

var certificateStasher = reconcilers.NewStasher[*corev1.Secret]("certificate")

// endregion

func Example_recipeReference() {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bakery-tls"}}
	cluster := newCluster(newSite())
	use := &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Use",
		Sync: func(ctx context.Context, _ *websitev1.Website) error {
			fmt.Printf("certificate %s\n", certificateStasher.RetrieveOrDie(ctx).Data[corev1.TLSCertKey])
			return nil
		},
	}
	steps := reconcilers.Sequence[*websitev1.Website]{CertificateReconciler(), use}
	reconcileOnce(cluster, steps) // halts, quietly
	if err := cluster.Create(context.Background(), secret); err != nil {
		fmt.Println(err)
	}
	reconcileOnce(cluster, steps) // halts, quietly
	secret.Data = map[string][]byte{corev1.TLSCertKey: []byte("of the bakery")}
	if err := cluster.Update(context.Background(), secret); err != nil {
		fmt.Println(err)
	}
	reconcileOnce(cluster, steps)
	// Output:
	// certificate of the bakery
}

// region recipes-two
// ConfigReconciler writes two ConfigMaps. OurChild identifies them by their names.
func ConfigReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return reconcilers.Sequence[*websitev1.Website]{
		configMapReconciler("pages", func(site *websitev1.Website) map[string]string {
			return map[string]string{"index": site.Spec.Pages[0].Title}
		}),
		configMapReconciler("proxy", func(site *websitev1.Website) map[string]string {
			return map[string]string{"host": site.Spec.Domain}
		}),
	}
}

func configMapReconciler(
	name string, data func(*websitev1.Website) map[string]string,
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.ChildReconciler[*websitev1.Website, *corev1.ConfigMap, *corev1.ConfigMapList]{
		Name: name,
		OurChild: func(site *websitev1.Website, child *corev1.ConfigMap) bool {
			return child.Name == site.Name+"-"+name
		},
		DesiredChild: func(_ context.Context, site *websitev1.Website) (*corev1.ConfigMap, error) {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-" + name},
				Data:       data(site),
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, site *websitev1.Website, _ *corev1.ConfigMap, err error) {
			if err != nil {
				site.Status.ConditionManager(ctx).MarkFalse(
					websitev1.ConditionContentReady, string(apierrs.ReasonForError(err)), "%s", err,
				)
			}
		},
	}
}

// endregion

func Example_recipeTwoChildren() {
	cluster := newCluster(newSite())
	reconcileOnce(cluster, ConfigReconciler())
	reconcileOnce(cluster, ConfigReconciler()) // both exist and are in sync
	// Output:
	// event: Normal Created: Created ConfigMap "bakery-pages"
	// event: Normal Created: Created ConfigMap "bakery-proxy"
}

// region recipes-poll
// SnapshotReconciler waits for a system that has no watches. Later reconcilers do not run before the snapshot is
// complete.
func SnapshotReconciler(
	state func(ctx context.Context, site string) (string, error),
) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Snapshot",
		SyncWithResult: func(ctx context.Context, site *websitev1.Website) (reconcilers.Result, error) {
			state, err := state(ctx, site.Name)
			if err != nil {
				return reconcilers.Result{}, err // retried with back-off
			}
			if state != "done" {
				site.Status.ConditionManager(ctx).MarkUnknown(
					websitev1.ConditionContentReady, "SnapshotPending", "the snapshot is %s", state,
				)
				return reconcilers.Result{RequeueAfter: 30 * time.Second}, fmt.Errorf(
					"the snapshot is %s: %w", state, reconcilers.ErrRetryAfter,
				)
			}
			return reconcilers.Result{}, nil
		},
	}
}

// endregion

func Example_recipePoll() {
	states := []string{"running", "done"}
	steps := reconcilers.Sequence[*websitev1.Website]{
		SnapshotReconciler(func(context.Context, string) (next string, err error) {
			next, states = states[0], states[1:]
			return next, nil
		}),
		&reconcilers.SyncReconciler[*websitev1.Website]{
			Name: "Announce",
			Sync: func(context.Context, *websitev1.Website) error {
				fmt.Println("the snapshot is done")
				return nil
			},
		},
	}
	cluster := newCluster(newSite())
	reconcileOnce(cluster, steps)
	reconcileOnce(cluster, steps)
	// Output:
	// again in 30s
	// the snapshot is done
}

// region recipes-conversion
// addChecks makes a pod ready only when its webhooks are served. Webhooks run in all replicas, controllers only in the
// leader.
func addChecks(mgr ctrl.Manager) error {
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}

// endregion

// The guide shows it. No test in this package has a webhook server.
var _ = addChecks
