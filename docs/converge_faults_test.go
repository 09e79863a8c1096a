// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"trueup.dev/converge"
)

// faultLessons are what the pages of faults show.
var faultLessons = func() map[converge.Fault]lesson {
	all := maps.Clone(requestLessons)
	for _, more := range []map[converge.Fault]lesson{foreignLessons, cacheLessons, worldLessons} {
		maps.Copy(all, more)
	}
	return all
}()

// requestLessons are about what happens to requests.
var requestLessons = map[converge.Fault]lesson{
	converge.CrashBefore: {
		oracle: converge.EndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/done"] == "true" {
				return nil
			}
			// region crash-before-wrong
			// Wrong: it says done, and then does it.
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/done", "true")
			if err := r.Update(ctx, owner); err != nil {
				return err
			}
			return r.Create(ctx, child)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region crash-before-right
			// Right: do it, look each time, and only then say so.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if err != nil || owner.Annotations["example.com/done"] == "true" {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/done", "true")
			return r.Update(ctx, owner)
			// endregion
		}),
	},
	converge.CrashAfter: {
		oracle: converge.Duplicates,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/child"] != "" {
				return nil
			}
			// region crash-after-wrong
			// Wrong: between the two, nobody knows the name.
			child.Name, child.GenerateName = "", owner.Name+"-"
			if err := r.Create(ctx, child); err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/child", child.Name)
			return r.Update(ctx, owner)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region crash-after-right
			// Right: the name follows from the owner.
			child.Name = owner.Name + "-settings"
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.TimeoutApplied: {
		oracle: converge.EndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			if owner.Annotations["example.com/disk"] != "" {
				return nil
			}
			// region timeout-applied-wrong
			// Wrong: an error does not mean that there is no disk. The next attempt makes another one.
			disk, err := r.Cloud.CreateNamed(ctx, "disk-", owner.Name)
			if err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/disk", disk)
			return r.Update(ctx, owner)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			// region timeout-applied-right
			// Right: the second attempt finds the disk of the first one.
			err := r.Cloud.Create(ctx, "disk-"+owner.Name, owner.Name)
			if errors.Is(err, converge.ErrExists) {
				return nil
			}
			return err
			// endregion
		}),
	},
	converge.TimeoutLost: {
		oracle: converge.EndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region timeout-lost-wrong
			// Wrong: nothing says that it got through.
			if err := r.Create(ctx, child); !apierrs.IsTimeout(err) {
				return client.IgnoreAlreadyExists(err)
			}
			return nil // it takes a while
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region timeout-lost-right
			// Right: after a timeout, look again.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.TooManyRequests: {
		oracle: converge.EndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region too-many-requests-wrong
			// Wrong: there may be no next event.
			err := r.Create(ctx, child)
			if apierrs.IsTooManyRequests(err) {
				return nil // the next event will do
			}
			return client.IgnoreAlreadyExists(err)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region too-many-requests-right
			// Right: the queue waits longer each time by itself.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.ServerError: {
		oracle: converge.Errors,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region server-error-wrong
			// Wrong: a 500 is not what the user has done.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsInvalid(err) || apierrs.IsInternalError(err) {
				return reconcile.TerminalError(err)
			}
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region server-error-right
			// Right: only what will be refused again is terminal.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsInvalid(err) {
				return reconcile.TerminalError(err)
			}
			return err
			// endregion
		}),
	},
	converge.HandOver: {
		oracle: converge.Duplicates,
		wrong: replacing(func(ctx context.Context, r *parent, found *corev1.ConfigMap) error {
			// region hand-over-wrong
			// Wrong: the request of the process before may come now, and delete what this one has made anew.
			return client.IgnoreNotFound(r.Delete(ctx, found))
			// endregion
		}),
		right: replacing(func(ctx context.Context, r *parent, found *corev1.ConfigMap) error {
			// region hand-over-right
			// Right: it deletes the one that was meant, or none.
			return client.IgnoreNotFound(r.Delete(ctx, found, client.Preconditions{UID: &found.UID}))
			// endregion
		}),
	},
}

// replacing is a scenario in which a child with another value than its owner is replaced.
func replacing(remove func(ctx context.Context, r *parent, found *corev1.ConfigMap) error) converge.Scenario {
	return copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
		found := &corev1.ConfigMap{}
		switch err := r.Get(ctx, client.ObjectKeyFromObject(child), found); {
		case apierrs.IsNotFound(err):
		case err != nil || found.Data["value"] == child.Data["value"]:
			return err
		default:
			if err := remove(ctx, r, found); err != nil {
				return err
			}
		}
		return r.Create(ctx, child)
	}, changed()...)
}
