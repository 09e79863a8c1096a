// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
	databasev1 "trueup.dev/examples/database/api/v1"
	"trueup.dev/examples/database/internal/controller"
	"trueup.dev/examples/database/internal/manifest"
	"trueup.dev/reconcilers"
)

// region wrong-credentials
// WrongCredentialsReconciler generates a password if status.secretName is empty.
func WrongCredentialsReconciler() reconcilers.SubReconciler[*databasev1.Database] {
	return &reconcilers.ChildReconciler[*databasev1.Database, *corev1.Secret, *corev1.SecretList]{
		Name: "Credentials",
		DesiredChild: func(_ context.Context, db *databasev1.Database) (*corev1.Secret, error) {
			if db.Status.SecretName != "" {
				return nil, reconcilers.OnlyReconcileChildStatus // the password already exists
			}
			return &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name + "-credentials"},
				Data:       map[string][]byte{"username": []byte("postgres"), "password": []byte(rand.Text())},
			}, nil
		},
		MergeBeforeUpdate: func(current, desired *corev1.Secret) { current.Data = desired.Data },
		ReflectChildStatusOnParent: func(ctx context.Context, db *databasev1.Database, child *corev1.Secret, err error) {
			conditions := db.Status.ConditionManager(ctx)
			if err != nil {
				conditions.MarkFalse(databasev1.ConditionCredentialsReady, "Refused", "%s", err)
				return
			}
			db.Status.SecretName = child.Name
			conditions.MarkTrue(databasev1.ConditionCredentialsReady, "Current", "")
		},
	}
}

// endregion

// postgres initializes a volume with the password that is in the Secret when the first server starts. The volume keeps
// the password.
var postgres = converge.Actor{
	Name: "postgres",
	For:  &appsv1.StatefulSet{},
	Act: func(ctx context.Context, c client.Client, obj client.Object) error {
		set, volume := obj.(*appsv1.StatefulSet), newVolume()
		if err := c.Get(ctx, client.ObjectKeyFromObject(volume), volume); client.IgnoreNotFound(err) != nil || err == nil {
			return err
		}
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: set.Namespace, Name: set.Name + "-credentials"}
		if err := c.Get(ctx, key, &secret); err != nil {
			return client.IgnoreNotFound(err) // a container waits for a Secret that it needs
		}
		volume.Annotations = map[string]string{"password": string(secret.Data[manifest.PasswordKey])}
		return c.Create(ctx, volume)
	},
}

// newVolume adds the volume claim of the first server.
func newVolume() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "data-shop-0"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
}

// clientsCanLogIn returns an error if the password in the Secret differs from the one in the volume.
func clientsCanLogIn(s converge.State) error {
	secret, volume := &corev1.Secret{}, newVolume()
	secret.Namespace, secret.Name = metav1.NamespaceDefault, "shop-credentials"
	if !s.Get(secret) || !s.Get(volume) {
		return errors.New("no server has started")
	}
	if volume.Annotations["password"] != string(secret.Data[manifest.PasswordKey]) {
		return errors.New("the password in the Secret differs from the password of the database")
	}
	return nil
}

// passwordScenario returns a scenario with a Database whose servers are initialized with the password of the step.
func passwordScenario(
	t *testing.T, credentials func() reconcilers.SubReconciler[*databasev1.Database],
) converge.Scenario {
	t.Helper()
	s := databaseScenario(t)
	s.World = append(s.World, postgres)
	s.Steps = converge.Steps(converge.Apply(inDefault(newDatabase())), converge.Settle())
	s.Desired = clientsCanLogIn
	s.Without = map[converge.Fault]string{
		converge.FaultChildDeleted: "deleting the Secret deletes the password, and the database must be given another one",
		converge.FaultDeleted:      "the same",
		converge.FaultRecreated:    "the same",
	}
	s.Setup = func(mgr ctrl.Manager) error {
		return (&reconcilers.ResourceReconciler[*databasev1.Database]{
			Reconciler: reconcilers.Sequence[*databasev1.Database]{credentials(), controller.StatefulSetReconciler()},
			Config:     reconcilers.NewConfig(mgr, &databasev1.Database{}, 10*time.Hour),
		}).SetupWithManager(t.Context(), mgr)
	}
	return s
}

func rightCredentials() reconcilers.SubReconciler[*databasev1.Database] {
	return controller.CredentialsReconciler(rand.Text)
}

func TestConverge_password(t *testing.T) {
	prove(t, passwordScenario(t, rightCredentials))
}
