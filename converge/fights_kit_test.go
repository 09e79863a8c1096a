// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// appOf returns the deployment of a secret, whose image is its value.
func appOf(secret *corev1.Secret) *appsv1.Deployment {
	labels := map[string]string{"app": secret.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: string(secret.Data["value"])}}},
			},
		},
	}
	_ = controllerutil.SetControllerReference(secret, deployment, scheme.Scheme)
	return deployment
}

// createOrChange creates an object, or changes the existing one and writes it if that makes a difference.
func createOrChange[T client.Object](ctx context.Context, c client.Client, obj T, change func(T)) error {
	existing := obj.DeepCopyObject().(T)
	switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), existing); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err != nil:
		change(obj)
		return c.Create(ctx, obj)
	}
	before := existing.DeepCopyObject().(T)
	if change(existing); reflect.DeepEqual(before, existing) {
		return nil
	}
	return c.Update(ctx, existing)
}

var done reconcile.Result

// appProgram sets up the program of an app: it writes the image of a deployment, and with all set its replicas as well.
func appProgram(all bool) func(manager.Manager) error {
	return setupOf("app", &corev1.Secret{}, func(
		ctx context.Context, c client.Client, secret *corev1.Secret,
	) (reconcile.Result, error) {
		desired := appOf(secret)
		return done, createOrChange(ctx, c, desired.DeepCopy(), func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = desired.Spec.Template.Spec.Containers[0].Image
			if all {
				d.Spec.Replicas = new(int32(1))
			}
		})
	}, &appsv1.Deployment{})
}

// scaler sets up a program that sets the replicas of deployments.
func scaler(name string) func(manager.Manager) error {
	return setupOf(name, &appsv1.Deployment{}, func(
		ctx context.Context, c client.Client, d *appsv1.Deployment,
	) (reconcile.Result, error) {
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 3 {
			return done, nil
		}
		before := d.DeepCopy()
		d.Spec.Replicas = new(int32(3))
		return done, c.Patch(ctx, d, client.MergeFrom(before))
	})
}

// marker sets up a program that writes an annotation of secrets.
func marker(name string, value func(secret *corev1.Secret) (key, value string)) func(manager.Manager) error {
	return setupOf(name, &corev1.Secret{}, func(
		ctx context.Context, c client.Client, secret *corev1.Secret,
	) (reconcile.Result, error) {
		key, value := value(secret)
		if secret.Annotations[key] == value || secret.DeletionTimestamp != nil {
			return done, nil
		}
		before := secret.DeepCopy()
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, value)
		return done, c.Patch(ctx, secret, client.MergeFrom(before))
	})
}

// counter returns a function for a marker that counts the changes of an annotation by others.
func counter(name, key string) func(*corev1.Secret) (string, string) {
	return func(secret *corev1.Secret) (string, string) {
		n, by, _ := strings.Cut(secret.Annotations[key], " by ")
		if by == name {
			return key, secret.Annotations[key]
		}
		i, _ := strconv.Atoi(n)
		return key, strconv.Itoa(i+1) + " by " + name
	}
}

// limiter sets up a program with a webhook that limits the replicas of deployments.
func limiter(most int32) func(manager.Manager) error {
	return func(mgr manager.Manager) error {
		mgr.GetWebhookServer().Register("/mutate-apps-v1-deployment", admission.WithDefaulter(
			mgr.GetScheme(), limit(most),
		))
		return nil
	}
}

type limit int32

func (l limit) Default(_ context.Context, d *appsv1.Deployment) error {
	if d.Spec.Replicas != nil && *d.Spec.Replicas > int32(l) {
		d.Spec.Replicas = new(int32(l))
	}
	return nil
}

// adopter sets up a program that makes the config map of a secret its own.
func adopter(name string, steal bool) func(manager.Manager) error {
	return setupOf(name, &corev1.ConfigMap{}, func(
		ctx context.Context, c client.Client, shared *corev1.ConfigMap,
	) (reconcile.Result, error) {
		owner := &corev1.Service{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: shared.Namespace, Name: name}, owner); err != nil {
			return done, client.IgnoreNotFound(err)
		}
		if other := metav1.GetControllerOf(shared); other != nil && (other.UID == owner.UID || !steal) {
			return done, nil
		}
		shared.OwnerReferences = nil
		if err := controllerutil.SetControllerReference(owner, shared, scheme.Scheme); err != nil {
			return done, err
		}
		return done, c.Update(ctx, shared)
	})
}

// claimer sets up a program that claims a config map.
func claimer(name string, steal bool) func(manager.Manager) error {
	return setupOf(name, &corev1.ConfigMap{}, func(
		ctx context.Context, c client.Client, claim *corev1.ConfigMap,
	) (reconcile.Result, error) {
		if claim.Data["holder"] == name || claim.Data["holder"] != "" && !steal {
			return done, nil
		}
		claim.Data = map[string]string{"holder": name}
		return done, c.Update(ctx, claim)
	})
}

// toggler sets up a program that sets an annotation of secrets every ten seconds.
func toggler(name, key string) func(manager.Manager) error {
	return setupOf(name, &corev1.Secret{}, func(
		ctx context.Context, c client.Client, secret *corev1.Secret,
	) (reconcile.Result, error) {
		if secret.Annotations["until"] != "" {
			return done, nil
		}
		again := reconcile.Result{RequeueAfter: 10 * time.Second}
		if secret.Annotations["last-"+name] != "" && secret.Annotations[key] == name {
			return again, nil
		}
		before := secret.DeepCopy()
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, key, name)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "last-"+name, "set")
		return again, c.Patch(ctx, secret, client.MergeFrom(before))
	})
}

// copyAll sets up a program that copies what a function makes of an object of one kind to one of another kind.
func copyAll[T client.Object](
	name string, kind T, copyTo func(ctx context.Context, c client.Client, obj T) error, others ...client.Object,
) func(manager.Manager) error {
	return setupOf(name, kind, func(ctx context.Context, c client.Client, obj T) (reconcile.Result, error) {
		if obj.GetDeletionTimestamp() != nil {
			return done, nil
		}
		return done, copyTo(ctx, c, obj)
	}, others...)
}

// ringScenario has programs that copy a value from a secret to a config map and on to a service, and back to the
// secret. With grow, the last one adds something each time.
func ringScenario(grow bool) Scenario {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "a"}
	annotate := func(obj client.Object, value string) {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["ring"] = value
		obj.SetAnnotations(annotations)
	}
	return Scenario{
		Setup: copyAll("one", &corev1.Secret{}, func(ctx context.Context, c client.Client, secret *corev1.Secret) error {
			return createOrChange(ctx, c, &corev1.ConfigMap{ObjectMeta: meta}, func(m *corev1.ConfigMap) {
				annotate(m, secret.Annotations["ring"])
				_ = controllerutil.SetControllerReference(secret, m, scheme.Scheme)
			})
		}, &corev1.ConfigMap{}),
		Programs: []Program{
			{Name: "second", Setup: copyAll("two", &corev1.ConfigMap{}, func(
				ctx context.Context, c client.Client, m *corev1.ConfigMap,
			) error {
				service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "None"}}
				return createOrChange(ctx, c, service, func(s *corev1.Service) {
					annotate(s, m.Annotations["ring"])
					_ = controllerutil.SetControllerReference(m, s, scheme.Scheme)
				})
			}, &corev1.Service{})},
			{Name: "third", Setup: copyAll("three", &corev1.Service{}, func(
				ctx context.Context, c client.Client, s *corev1.Service,
			) error {
				secret := &corev1.Secret{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(s), secret); err != nil {
					return client.IgnoreNotFound(err)
				}
				value := s.Annotations["ring"]
				if grow {
					value += "x"
				}
				if value == secret.Annotations["ring"] {
					return nil
				}
				annotate(secret, value)
				return c.Update(ctx, secret)
			})},
		},
	}
}

// pairScenario has two programs that answer each other in different fields of one object. With grow, they never stop.
func pairScenario(grow bool) Scenario {
	increment := 0
	if grow {
		increment = 1
	}
	follow := func(own, other string, more int) func(*corev1.Secret) (string, string) {
		return func(secret *corev1.Secret) (string, string) {
			n, _ := strconv.Atoi(secret.Annotations[other])
			return own, strconv.Itoa(n + more)
		}
	}
	return Scenario{
		Setup:    marker("asks", follow("asked", "answered", increment)),
		Programs: []Program{{Name: "second", Setup: marker("answers", follow("answered", "asked", 0))}},
	}
}
