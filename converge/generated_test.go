// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestNamedAfterGenerated has objects that are named after those with generated names, by an actor and by the
// reconciler. After another client has deleted one, there are other names.
func TestNamedAfterGenerated(t *testing.T) {
	for name, wrong := range map[string]bool{"right": false, "wrong": true} {
		t.Run(name, func(t *testing.T) {
			s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
				list := &corev1.ConfigMapList{}
				reader := e.APIReader
				if wrong {
					reader = e.Client // a stale cache leads to a second object
				}
				if err := reader.List(ctx, list, client.InNamespace(secret.Namespace)); err != nil {
					return reconcile.Result{}, err
				}
				if len(list.Items) > 0 {
					service := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
						Namespace: secret.Namespace, Name: list.Items[0].Name + "-account",
					}}
					if err := controllerutil.SetControllerReference(&list.Items[0], service, scheme.Scheme); err != nil {
						return reconcile.Result{}, err
					}
					return reconcile.Result{}, client.IgnoreAlreadyExists(e.Client.Create(ctx, service))
				}
				configMap := configMapOf(secret, true)
				configMap.Name, configMap.GenerateName = "", "a-"
				return reconcile.Result{}, e.Client.Create(ctx, configMap)
			})
			s.Steps = Lifecycle(newSecret("a"))
			s.Watches = []Watch{{
				Object: &corev1.ServiceAccount{},
				Requests: func(_ context.Context, obj client.Object) []reconcile.Request {
					return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: "a"}}}
				},
			}}
			s.World = []Actor{actorOn("templates", &corev1.ConfigMap{}, func(
				ctx context.Context, c client.Client, m *corev1.ConfigMap,
			) error {
				template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-template"}}
				template.Template.Labels = map[string]string{"of": m.Name}
				template.Template.Spec.Containers = []corev1.Container{{Name: "a", Image: "a"}}
				if err := controllerutil.SetControllerReference(m, template, scheme.Scheme); err != nil {
					return err
				}
				return client.IgnoreAlreadyExists(c.Create(ctx, template))
			})}
			if wrong {
				if f := failureOf(t, s); f.Violation.Oracle != OracleDuplicates {
					t.Errorf("got %v, want a second object", f)
				}
			} else if f := foundIn(t, s); f != nil {
				t.Error(f)
			}
		})
	}
}

// TestNamesOfClouds has an external system that generates names, which a reconciler stores in a ConfigMap. A lost
// response leads to a second value, which is deleted.
func TestNamesOfClouds(t *testing.T) {
	s := secretScenario(func(ctx context.Context, e Env, secret *corev1.Secret) (reconcile.Result, error) {
		disks, err := e.Cloud.List(ctx, "disk-")
		if err != nil {
			return reconcile.Result{}, err
		}
		if secret.DeletionTimestamp != nil {
			for _, disk := range disks {
				if err := e.Cloud.Delete(ctx, disk); err != nil && !errors.Is(err, ErrAbsent) {
					return reconcile.Result{}, err
				}
			}
			controllerutil.RemoveFinalizer(secret, "example.com/disk")
			return reconcile.Result{}, client.IgnoreNotFound(e.Client.Update(ctx, secret))
		}
		if controllerutil.AddFinalizer(secret, "example.com/disk") {
			return reconcile.Result{}, e.Client.Update(ctx, secret)
		}
		configMap := &corev1.ConfigMap{}
		err = e.APIReader.Get(ctx, client.ObjectKeyFromObject(secret), configMap)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err == nil {
			for _, disk := range disks {
				if disk != configMap.Data["disk"] {
					if err := e.Cloud.Delete(ctx, disk); err != nil && !errors.Is(err, ErrAbsent) {
						return reconcile.Result{}, err
					}
				}
			}
			if slices.Contains(disks, configMap.Data["disk"]) {
				return reconcile.Result{}, nil
			}
		}
		disk, err := e.Cloud.CreateNamed(ctx, "disk-", "1Gi")
		if err != nil {
			return reconcile.Result{}, err
		}
		created := configMapOf(secret, true)
		created.Data = map[string]string{"disk": disk}
		if configMap.UID != "" {
			configMap.Data = created.Data
			return reconcile.Result{}, e.Client.Update(ctx, configMap)
		}
		return reconcile.Result{}, e.Client.Create(ctx, created)
	})
	s.Off = map[Oracle]string{OracleDuplicates: "a second disk is deleted"}
	if f := foundIn(t, s); f != nil {
		t.Error(f)
	}
}
