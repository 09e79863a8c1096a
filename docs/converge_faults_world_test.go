// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// worldLessons are about processes, users, actors, and changes while the controller is idle.
var worldLessons = map[converge.Fault]lesson{
	converge.FaultRestart: {
		oracle: converge.OracleDuplicates,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			// region restart-wrong
			// Wrong: the next process does not have this memory.
			if r.memory[owner.Name] {
				return nil
			}
			_, err := r.Cloud.CreateNamed(ctx, "disk-", owner.Name)
			r.memory[owner.Name] = err == nil
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			// region restart-right
			// Right: find the disk by its name. Use memory only to save requests.
			return r.Cloud.Put(ctx, "disk-"+owner.Name, owner.Name)
			// endregion
		}),
	},
	converge.FaultMeanwhile: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/applied"] == string(owner.Data["value"]) {
				return nil
			}
			if err := createOrUpdate(ctx, r, owner.DeepCopy(), child); err != nil {
				return err
			}
			// region meanwhile-wrong
			// Wrong: the child was built from an older version.
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
				return client.IgnoreNotFound(err)
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/applied", string(owner.Data["value"]))
			return r.Update(ctx, owner)
			// endregion
		}, changed()...),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region meanwhile-right
			// Right: use one version of the owner in a reconcile. If it is stale, Update returns a conflict.
			err := createOrUpdate(ctx, r, owner, child)
			if err != nil || owner.Annotations["example.com/applied"] == string(owner.Data["value"]) {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/applied", string(owner.Data["value"]))
			return r.Update(ctx, owner)
			// endregion
		}, changed()...),
	},
	converge.FaultOvertaken: {
		oracle: converge.OracleEndState,
		wrong: sharing(func(ctx context.Context, r *shared, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region overtaken-wrong
			// Wrong: all workers share the field.
			r.Value = string(owner.Data["value"])
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{}); !apierrs.IsNotFound(err) {
				return err
			}
			child.Data = map[string]string{"value": r.Value}
			return r.Create(ctx, child)
			// endregion
		}),
		right: sharing(func(ctx context.Context, r *shared, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region overtaken-right
			// Right: a variable belongs to one reconcile.
			value := string(owner.Data["value"])
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{}); !apierrs.IsNotFound(err) {
				return err
			}
			child.Data = map[string]string{"value": value}
			return r.Create(ctx, child)
			// endregion
		}),
	},
	converge.FaultLate: {
		oracle: converge.OracleEndState,
		wrong: running(func(ctx context.Context, r client.Client, owner *corev1.Secret, deployment *appsv1.Deployment) error {
			// region late-wrong
			// Wrong: "not ready yet" does not mean "failed".
			if owner.Annotations["example.com/state"] != "" {
				return nil
			}
			state := "failed"
			if deployment.Status.ReadyReplicas > 0 {
				state = "ready"
			}
			// endregion
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/state", state)
			return r.Update(ctx, owner)
		}),
		right: running(func(ctx context.Context, r client.Client, owner *corev1.Secret, deployment *appsv1.Deployment) error {
			// region late-right
			// Right: no state is final.
			state := "pending"
			if deployment.Status.ReadyReplicas > 0 {
				state = "ready"
			}
			if owner.Annotations["example.com/state"] == state {
				return nil
			}
			// endregion
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/state", state)
			return r.Update(ctx, owner)
		}),
	},
	converge.FaultFlap: {
		oracle: converge.OracleEndState,
		wrong: running(func(ctx context.Context, r client.Client, owner *corev1.Secret, deployment *appsv1.Deployment) error {
			// region flap-wrong
			// Wrong: a temporary failure is treated as permanent.
			state := "pending"
			switch before := owner.Annotations["example.com/state"]; {
			case before == "failed":
				return nil
			case deployment.Status.AvailableReplicas > 0:
				state = "ready"
			case before == "ready":
				state = "failed"
			}
			// endregion
			if owner.Annotations["example.com/state"] == state {
				return nil
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/state", state)
			return r.Update(ctx, owner)
		}),
		right: running(func(ctx context.Context, r client.Client, owner *corev1.Secret, deployment *appsv1.Deployment) error {
			// region flap-right
			// Right: report the current state.
			state := "pending"
			if deployment.Status.AvailableReplicas > 0 {
				state = "ready"
			}
			// endregion
			if owner.Annotations["example.com/state"] == state {
				return nil
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/state", state)
			return r.Update(ctx, owner)
		}),
	},
	converge.FaultEarly: {
		oracle: converge.OracleEndState,
		wrong: waiting(func(
			ctx context.Context, r *parent, waits map[string]bool, owner *corev1.Secret, deployment *appsv1.Deployment,
		) error {
			// region early-wrong
			// Wrong: the awaited event may arrive before the wait starts.
			if err := r.Create(ctx, deployment); err != nil {
				return client.IgnoreAlreadyExists(err)
			}
			err := r.tell(ctx, owner) // writes to the owner
			waits[owner.Name] = err == nil
			return err
			// endregion
		}),
		right: waiting(func(
			ctx context.Context, r *parent, waits map[string]bool, owner *corev1.Secret, deployment *appsv1.Deployment,
		) error {
			// region early-right
			// Right: start to wait first. Better: do not wait, but read the current state.
			waits[owner.Name] = true
			err := client.IgnoreAlreadyExists(r.Create(ctx, deployment))
			if err == nil {
				err = r.tell(ctx, owner)
			}
			// endregion
			if err != nil {
				delete(waits, owner.Name)
			}
			return err
		}),
	},
	converge.FaultChildDeleted: {
		oracle: converge.OracleEndState,
		wrong: wired(func(mgr manager.Manager, r reconcile.Reconciler) error {
			// region child-deleted-wrong
			// Wrong: no event reports the deletion of a ConfigMap.
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(r)
			// endregion
		}),
		right: wired(func(mgr manager.Manager, r reconcile.Reconciler) error {
			// region child-deleted-right
			// Right: watch the kinds that are created.
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).Complete(r)
			// endregion
		}),
	},
	converge.FaultDrift: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region drift-wrong
			// Wrong: an existing object may differ from the desired one.
			err := r.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{})
			if apierrs.IsNotFound(err) {
				err = client.IgnoreAlreadyExists(r.Create(ctx, child))
			}
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region drift-right
			// Right: compare the managed fields, and update the object if they differ.
			value := child.Data["value"]
			err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
			if err == nil && child.Data["value"] != value {
				child.Data["value"] = value
				err = r.Update(ctx, child)
			}
			// endregion
			if apierrs.IsNotFound(err) {
				return createOrUpdate(ctx, r, owner, child)
			}
			return err
		}),
	},
}

// wired is a scenario with a correct reconciler and the given set-up.
func wired(setup func(mgr manager.Manager, r reconcile.Reconciler) error) converge.Scenario {
	s := copying(nil)
	s.New, s.Owns = nil, nil
	s.Setup = func(mgr manager.Manager) error {
		return setup(mgr, copying(createOrUpdate).New(converge.EnvOf(mgr)))
	}
	return s
}

// running is a scenario in which a Secret has a Deployment, and the reconciler acts when it exists.
func running(
	do func(ctx context.Context, r client.Client, owner *corev1.Secret, deployment *appsv1.Deployment) error,
) converge.Scenario {
	s := copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
		deployment := newDeployment(child)
		if err := r.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); apierrs.IsNotFound(err) {
			return client.IgnoreAlreadyExists(r.Create(ctx, deployment))
		} else if err != nil {
			return err
		}
		return do(ctx, r, owner, deployment)
	})
	s.Owns = []client.Object{&appsv1.Deployment{}}
	s.World = []converge.Actor{converge.Deployments(converge.BecomeReady)}
	return s
}

// shared is a reconciler with a field.
type shared struct {
	client.Client

	Value string
}

// sharing is a scenario with two workers, and two Secrets that are created at once.
func sharing(
	do func(ctx context.Context, r *shared, owner *corev1.Secret, child *corev1.ConfigMap) error,
) converge.Scenario {
	other := aSecret()
	other.Name, other.Data = "b", map[string][]byte{"value": []byte("2")}
	return converge.Scenario{
		Scheme: scheme,
		For:    &corev1.Secret{},
		Steps:  converge.Steps(converge.Apply(aSecret()), converge.Apply(other), converge.Settle()),
		Setup: func(mgr manager.Manager) error {
			r := &shared{Client: mgr.GetClient()}
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Owns(&corev1.ConfigMap{}).WithOptions(
				controller.Options{MaxConcurrentReconciles: 2},
			).
				Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					owner := &corev1.Secret{}
					if err := r.Get(ctx, req.NamespacedName, owner); err != nil {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: owner.Name}}
					if err := controllerutil.SetControllerReference(owner, child, scheme); err != nil {
						return reconcile.Result{}, err
					}
					return reconcile.Result{}, do(ctx, r, owner, child)
				}))
		},
	}
}

// newDeployment returns a Deployment with the owner of a child.
func newDeployment(child *corev1.ConfigMap) *appsv1.Deployment {
	labels := map[string]string{"app": child.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: child.Name, OwnerReferences: child.OwnerReferences},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app"}}},
			},
		},
	}
}

// waiting is a scenario in which a reconciler waits, in memory, for the event of a Deployment that becomes ready.
func waiting(
	start func(
		ctx context.Context, r *parent, waits map[string]bool, owner *corev1.Secret, deployment *appsv1.Deployment,
	) error,
) converge.Scenario {
	var waits map[string]bool
	s := copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
		waits = r.memory
		if waits[owner.Name] {
			return nil
		}
		deployment := newDeployment(child)
		if err := r.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); apierrs.IsNotFound(err) {
			return start(ctx, r, waits, owner, deployment)
		} else if err != nil || deployment.Status.ReadyReplicas == 0 {
			return err
		}
		if owner.Annotations["example.com/state"] == "ready" {
			return nil
		}
		metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/children", "1")
		metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/state", "ready")
		return r.Update(ctx, owner)
	})
	s.Owns = nil
	s.Watches = []converge.Watch{{Object: &appsv1.Deployment{}, Requests: func(
		_ context.Context, obj client.Object,
	) []reconcile.Request {
		if obj.(*appsv1.Deployment).Status.ReadyReplicas > 0 {
			delete(waits, obj.GetName())
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}}}
	s.World = []converge.Actor{converge.Deployments(converge.BecomeReady)}
	return s
}
