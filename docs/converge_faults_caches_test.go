// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// cacheLessons are about stale caches and repeated watch events.
var cacheLessons = map[converge.Fault]lesson{
	converge.FaultLagRead: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			again := child.DeepCopy()
			// region lag-read-wrong
			// Wrong: the client reads from a cache, which may not have the new object yet.
			if err := client.IgnoreAlreadyExists(r.Create(ctx, child)); err != nil {
				return err
			}
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), child); !apierrs.IsNotFound(err) {
				return err
			}
			again.Name = owner.Name + "-again" // the first one seems to be rejected
			// endregion
			return client.IgnoreAlreadyExists(r.Create(ctx, again))
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region lag-read-right
			// Right: Create returns the stored object. An existing object is read from the API server.
			err := r.Create(ctx, child)
			if apierrs.IsAlreadyExists(err) {
				err = r.Live.Get(ctx, client.ObjectKeyFromObject(child), child)
			}
			// endregion
			return err
		}),
	},
	converge.FaultLagReconcile: {
		oracle: converge.OracleDuplicates,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region lag-reconcile-wrong
			// Wrong: the list may be older than the last reconcile.
			children := &corev1.ConfigMapList{}
			if err := r.List(ctx, children, client.InNamespace(owner.Namespace)); err != nil {
				return err
			}
			if len(children.Items) == 0 {
				child.Name, child.GenerateName = "", owner.Name+"-"
				if err := r.Create(ctx, child); err != nil {
					return err
				}
			}
			// endregion
			return r.tell(ctx, owner)
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region lag-reconcile-right
			// Right: the API server rejects a second object of that name.
			child.Name = owner.Name + "-settings"
			if err := client.IgnoreAlreadyExists(r.Create(ctx, child)); err != nil {
				return err
			}
			// endregion
			return r.tell(ctx, owner)
		}),
	},
	converge.FaultLagLong: {
		oracle: converge.OracleDuplicates,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region lag-long-wrong
			// Wrong: no delay is long enough.
			time.Sleep(50 * time.Millisecond) // the cache catches up
			children := &corev1.ConfigMapList{}
			if err := r.List(ctx, children, client.InNamespace(owner.Namespace)); err != nil {
				return err
			}
			// endregion
			if len(children.Items) == 0 {
				child.Name, child.GenerateName = "", owner.Name+"-"
				if err := r.Create(ctx, child); err != nil {
					return err
				}
			}
			return r.tell(ctx, owner)
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region lag-long-right
			// Right: if the list must be current, read it from the API server.
			children := &corev1.ConfigMapList{}
			if err := r.Live.List(ctx, children, client.InNamespace(owner.Namespace)); err != nil {
				return err
			}
			// endregion
			if len(children.Items) == 0 {
				if err := client.IgnoreAlreadyExists(r.Create(ctx, child)); err != nil {
					return err
				}
			}
			return r.tell(ctx, owner)
		}),
	},
	converge.FaultRelist: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if r.Get(ctx, client.ObjectKeyFromObject(child), child) != nil {
				return client.IgnoreAlreadyExists(r.Create(ctx, child))
			}
			// region relist-wrong
			// Wrong: the reconciler must read the label at the right moment.
			if owner.Labels["restart"] == "now" && child.Data["restarted"] == "" {
				child.Data["restarted"] = "yes"
				return r.Update(ctx, child)
			}
			// endregion
			return nil
		}, restarting("now", "")...),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if r.Get(ctx, client.ObjectKeyFromObject(child), child) != nil {
				return client.IgnoreAlreadyExists(r.Create(ctx, child))
			}
			// region relist-right
			// Right: the desired state is stored, and can be compared at any time.
			if owner.Labels["restart"] != child.Data["restarted"] {
				child.Data["restarted"] = owner.Labels["restart"]
				return r.Update(ctx, child)
			}
			// endregion
			return nil
		}, restarting("at-nine", "at-ten")...),
	},
	converge.FaultResync: {
		oracle: converge.OracleIdempotence,
		wrong: rolling(func(restart func()) handler.Funcs {
			// region resync-wrong
			// Wrong: an update is not always a change.
			return handler.Funcs{UpdateFunc: func(
				context.Context, event.UpdateEvent, workqueue.TypedRateLimitingInterface[reconcile.Request],
			) {
				restart()
			}}
			// endregion
		}),
		right: rolling(func(func()) handler.Funcs {
			// region resync-right
			// Right: an event names the object to reconcile, and never the action.
			look := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(aSecret())}
			return handler.Funcs{UpdateFunc: func(
				_ context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request],
			) {
				q.Add(look)
			}}
			// endregion
		}),
	},
	converge.FaultListOrder: {
		oracle: converge.OracleQuiescence,
		wrong: leading(func(themes []corev1.ConfigMap) string {
			// region list-order-wrong
			// Wrong: a list has no order.
			return themes[0].Name
			// endregion
		}),
		right: leading(func(themes []corev1.ConfigMap) string {
			// region list-order-right
			// Right: sort it.
			return slices.MinFunc(themes, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) }).Name
			// endregion
		}),
	},
	converge.FaultStaleStart: {
		oracle: converge.OracleDuplicates,
		wrong: travelling(copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region stale-start-wrong
			// Wrong: the owner may be an hour old, but the deleted object has current data.
			if string(owner.Data["value"]) == "1" {
				return client.IgnoreNotFound(r.Delete(ctx, child))
			}
			// endregion
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
		}, changed()...)),
		right: travelling(copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region stale-start-right
			// Right: before an irreversible action, read from the API server.
			if err := r.Live.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
				return client.IgnoreNotFound(err)
			}
			if string(owner.Data["value"]) == "1" {
				return client.IgnoreNotFound(r.Delete(ctx, child))
			}
			// endregion
			return createOrUpdate(ctx, r, owner, child)
		}, changed()...)),
	},
}

// tell records in the owner that the child exists, which leads to another reconcile.
func (r *parent) tell(ctx context.Context, owner *corev1.Secret) error {
	if owner.Annotations["example.com/children"] == "1" {
		return nil
	}
	metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/children", "1")
	return r.Update(ctx, owner)
}

// restarting returns steps in which users label a Secret, and change the label shortly afterwards.
func restarting(labels ...string) []converge.Step {
	steps := converge.Steps(converge.Apply(aSecret()), converge.Settle())
	for _, label := range labels {
		steps = append(
			steps, converge.Change(aSecret(), func(s *corev1.Secret) { s.Labels = map[string]string{"restart": label} }),
			converge.Sleep(10*time.Millisecond),
		)
	}
	return append(steps, converge.Settle())
}

// rolling is a scenario in which each change of a theme may restart the child of a Secret.
func rolling(handlers func(restart func()) handler.Funcs) converge.Scenario {
	theme := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theme"}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	return converge.Scenario{
		Scheme: scheme,
		For:    &corev1.Secret{},
		Given:  []client.Object{aSecret(), theme},
		Steps:  converge.Steps(converge.Settle(), converge.Apply(other), converge.Settle()),
		Setup: func(mgr manager.Manager) error {
			restarts := atomic.Bool{}
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Watches(
				&corev1.ConfigMap{}, handlers(func() { restarts.Store(true) }),
			).
				Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					owner := &corev1.Secret{}
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, owner); err != nil || !restarts.Load() {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/restarted", "true")
					return reconcile.Result{}, mgr.GetClient().Update(ctx, owner)
				}))
		},
	}
}

// leading is a scenario in which a Secret names the leader of several ConfigMaps.
func leading(lead func([]corev1.ConfigMap) string) converge.Scenario {
	s := copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
		themes := &corev1.ConfigMapList{}
		if err := r.List(ctx, themes, client.InNamespace(owner.Namespace)); err != nil {
			return err
		}
		leader := lead(themes.Items)
		if owner.Annotations["example.com/leader"] == leader {
			return nil
		}
		metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/leader", leader)
		return r.Update(ctx, owner)
	})
	for _, name := range []string{"blue", "green", "red"} {
		s.Given = append(s.Given, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	return s
}

func travelling(s converge.Scenario) converge.Scenario {
	s.Consistency = converge.TimeTravel
	return s
}
