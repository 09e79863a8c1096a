// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/apis"
	"trueup.dev/converge"
	bannerv1 "trueup.dev/docs/internal/banner/v1"
)

// oracleLessons are the lessons on the pages of oracles.
var oracleLessons = map[converge.Oracle]lesson{
	converge.OracleQuiescence: {
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			// region o1-wrong
			// Wrong: each write is an event, which leads to the next write.
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/seen", time.Now().Format(time.RFC3339Nano))
			return r.Update(ctx, owner)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			// region o1-right
			// Right: the written value depends only on the stored state.
			if owner.Annotations["example.com/seen"] == "true" {
				return nil
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/seen", "true")
			return r.Update(ctx, owner)
			// endregion
		}),
	},
	converge.OracleEndState: {
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region o2-wrong
			// Wrong: if it fails, it is not retried.
			if err := r.Create(ctx, child); err != nil {
				return nil
			}
			// endregion
			return nil
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region o2-right
			// Right: ignore only expected errors.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.OracleIdempotence: {
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region o3-wrong
			// Wrong: the value changes each minute.
			_, err := controllerutil.CreateOrUpdate(ctx, r, child, func() error {
				child.Data = map[string]string{"checked": time.Now().Format("15:04")}
				return nil
			})
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region o3-right
			// Right: the value changes only when its source changes.
			_, err := controllerutil.CreateOrUpdate(ctx, r, child, func() error {
				child.Data = map[string]string{"value": string(owner.Data["value"])}
				return controllerutil.SetControllerReference(owner, child, r.Scheme())
			})
			return err
			// endregion
		}),
	},
	converge.OracleDuplicates: {
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			err := r.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{})
			if !apierrs.IsNotFound(err) {
				return err
			}
			fresh := child.DeepCopy()
			// region o4-wrong
			// Wrong: any error deletes the object with its data, and creates it again.
			if err := r.Create(ctx, child); err == nil || r.Delete(ctx, child) != nil {
				return err
			}
			return r.Create(ctx, fresh)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region o4-right
			// Right: an object of this name is the desired one.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.OracleDeletion: {
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			child.OwnerReferences = nil
			// region o5-wrong
			// Wrong: it is not deleted with its owner.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}, converge.Apply(aSecret()), converge.Settle(), converge.Delete(aSecret()), converge.Settle()),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			child.OwnerReferences = nil
			// region o5-right
			// Right: the garbage collector deletes it.
			if err := controllerutil.SetControllerReference(owner, child, r.Scheme()); err != nil {
				return err
			}
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}, converge.Apply(aSecret()), converge.Settle(), converge.Delete(aSecret()), converge.Settle()),
	},
	converge.OracleStatus: {
		wrong: bannering(func(ctx context.Context, r client.Client, banner *bannerv1.Banner, page *corev1.ConfigMap) error {
			// region o6-wrong
			// Wrong: the status is Ready before the page exists.
			if !meta.IsStatusConditionTrue(banner.Status.Conditions, apis.ConditionReady) {
				banner.Status.MarkShown(ctx)
				if err := r.Status().Update(ctx, banner); err != nil {
					return err
				}
			}
			return client.IgnoreAlreadyExists(r.Create(ctx, page))
			// endregion
		}),
		right: bannering(func(ctx context.Context, r client.Client, banner *bannerv1.Banner, page *corev1.ConfigMap) error {
			// region o6-right
			// Right: do the work first, then write the status.
			if err := client.IgnoreAlreadyExists(r.Create(ctx, page)); err != nil {
				return err
			}
			if meta.IsStatusConditionTrue(banner.Status.Conditions, apis.ConditionReady) {
				return nil
			}
			banner.Status.MarkShown(ctx)
			return r.Status().Update(ctx, banner)
			// endregion
		}),
	},
	converge.OracleErrors: {
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region o7-wrong
			// Wrong: a timeout is temporary, but a terminal error is not retried.
			if err := r.Create(ctx, child); err != nil && !apierrs.IsAlreadyExists(err) {
				return reconcile.TerminalError(err)
			}
			// endregion
			return nil
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region o7-right
			// Right: only errors that recur on each attempt are terminal.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsInvalid(err) {
				return reconcile.TerminalError(err)
			}
			return err
			// endregion
		}),
	},
	converge.OracleSharedObjects: {
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, _ *corev1.ConfigMap) error {
			// region o8-wrong
			// Wrong: these are the objects of the cache, which all readers share.
			secrets := &corev1.SecretList{}
			err := r.List(ctx, secrets, client.UnsafeDisableDeepCopy)
			for i := range secrets.Items {
				secrets.Items[i].Data["value"] = nil // do not retain it
			}
			// endregion
			return err
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, _ *corev1.ConfigMap) error {
			// region o8-right
			// Right: without the option, List returns copies.
			secrets := &corev1.SecretList{}
			err := r.List(ctx, secrets)
			for i := range secrets.Items {
				secrets.Items[i].Data["value"] = nil
			}
			// endregion
			return err
		}),
	},
	converge.OracleLeaks: {
		wrong: copying(func(_ context.Context, _ *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			notify := func(string) {}
			// region o9-wrong
			// Wrong: the channel is never closed, so each reconcile leaks a goroutine.
			names := make(chan string)
			go func() {
				for name := range names {
					notify(name)
				}
			}()
			names <- owner.Name
			// endregion
			return nil
		}),
		right: copying(func(_ context.Context, _ *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			notify := func(string) {}
			// region o9-right
			// Right: the goroutine ends with the reconcile. A longer-lived one ends with the context.
			names := make(chan string)
			defer close(names)
			go func() {
				for name := range names {
					notify(name)
				}
			}()
			names <- owner.Name
			// endregion
			return nil
		}),
	},
	converge.OracleAdvice: {
		wrong: strictly(copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			found := &corev1.ConfigMap{}
			switch err := r.Get(ctx, client.ObjectKeyFromObject(child), found); {
			case apierrs.IsNotFound(err) && string(owner.Data["value"]) == "1":
				return client.IgnoreAlreadyExists(r.Create(ctx, child))
			case err != nil || string(owner.Data["value"]) == "1":
				return client.IgnoreNotFound(err)
			}
			// region o10-wrong
			// Wrong: another object may have this name now.
			return client.IgnoreNotFound(r.Delete(ctx, found))
			// endregion
		}, changed()...)),
		right: strictly(copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			found := &corev1.ConfigMap{}
			switch err := r.Get(ctx, client.ObjectKeyFromObject(child), found); {
			case apierrs.IsNotFound(err) && string(owner.Data["value"]) == "1":
				return r.Create(ctx, child)
			case err != nil || string(owner.Data["value"]) == "1":
				return client.IgnoreNotFound(err)
			}
			// region o10-right
			// Right: the API server rejects the deletion of another object with a conflict.
			return client.IgnoreNotFound(r.Delete(ctx, found, client.Preconditions{UID: &found.UID}))
			// endregion
		}, changed()...)),
	},
}

func strictly(s converge.Scenario) converge.Scenario {
	s.Strict = true
	return s
}

// bannering is a scenario in which a Banner gets a page and a status.
func bannering(
	do func(ctx context.Context, r client.Client, banner *bannerv1.Banner, page *corev1.ConfigMap) error,
) converge.Scenario {
	return converge.Scenario{
		Scheme: scheme,
		For:    &bannerv1.Banner{},
		Owns:   []client.Object{&corev1.ConfigMap{}},
		Given:  []client.Object{&bannerv1.Banner{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}},
		Steps:  converge.Steps(converge.Settle()),
		New: func(e converge.Env) reconcile.Reconciler {
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				banner := &bannerv1.Banner{}
				if err := e.Client.Get(ctx, req.NamespacedName, banner); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				banner.Status.InitializeConditions(ctx)
				page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
				return reconcile.Result{}, errors.Join(
					controllerutil.SetControllerReference(banner, page, scheme), do(ctx, e.Client, banner, page),
				)
			})
		},
	}
}
