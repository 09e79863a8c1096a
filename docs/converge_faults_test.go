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

// faultLessons are the lessons on the pages of faults.
var faultLessons = func() map[converge.Fault]lesson {
	all := maps.Clone(requestLessons)
	for _, more := range []map[converge.Fault]lesson{foreignLessons, cacheLessons, worldLessons} {
		maps.Copy(all, more)
	}
	return all
}()

// requestLessons are about faults of requests.
var requestLessons = map[converge.Fault]lesson{
	converge.FaultCrashBefore: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/done"] == "true" {
				return nil
			}
			// region crash-before-wrong
			// Wrong: the work is recorded as done before it is done.
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/done", "true")
			if err := r.Update(ctx, owner); err != nil {
				return err
			}
			return r.Create(ctx, child)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region crash-before-right
			// Right: do the work first, check it each time, and only then record it.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if err != nil || owner.Annotations["example.com/done"] == "true" {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/done", "true")
			return r.Update(ctx, owner)
			// endregion
		}),
	},
	converge.FaultCrashAfter: {
		oracle: converge.OracleDuplicates,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/child"] != "" {
				return nil
			}
			// region crash-after-wrong
			// Wrong: a crash between the two writes loses the name.
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
			// Right: derive the name from the owner.
			child.Name = owner.Name + "-settings"
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.FaultTimeoutApplied: {
		oracle: converge.OracleDuplicates,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, _ *corev1.ConfigMap) error {
			if owner.Annotations["example.com/disk"] != "" {
				return nil
			}
			// region timeout-applied-wrong
			// Wrong: the disk may exist despite the error. The next attempt creates another one.
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
	converge.FaultTimeoutLost: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region timeout-lost-wrong
			// Wrong: the write may not have taken effect.
			if err := r.Create(ctx, child); !apierrs.IsTimeout(err) {
				return client.IgnoreAlreadyExists(err)
			}
			return nil // it takes a while
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region timeout-lost-right
			// Right: after a timeout, retry.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.FaultTooManyRequests: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region too-many-requests-wrong
			// Wrong: there may be no next event.
			err := r.Create(ctx, child)
			if apierrs.IsTooManyRequests(err) {
				return nil // the next event retries it
			}
			return client.IgnoreAlreadyExists(err)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region too-many-requests-right
			// Right: the queue retries with back-off.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.FaultServerError: {
		oracle: converge.OracleErrors,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region server-error-wrong
			// Wrong: a 500 is not a mistake of the user.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsInvalid(err) || apierrs.IsInternalError(err) {
				return reconcile.TerminalError(err)
			}
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region server-error-right
			// Right: only errors that recur on each attempt are terminal.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsInvalid(err) {
				return reconcile.TerminalError(err)
			}
			return err
			// endregion
		}),
	},
	converge.FaultQuota: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region quota-wrong
			// Wrong: the quota may have room later, and nothing triggers another attempt then.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsForbidden(err) {
				return reconcile.TerminalError(err)
			}
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region quota-right
			// Right: the queue retries with back-off.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
	},
	converge.FaultForbidden: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region forbidden-wrong
			// Wrong: a status 403 has other reasons, too.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.IsForbidden(err) {
				return nil // the namespace is being deleted
			}
			return err
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region forbidden-right
			// Right: the cause distinguishes them.
			err := client.IgnoreAlreadyExists(r.Create(ctx, child))
			if apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return nil // the namespace is being deleted
			}
			return err
			// endregion
		}),
	},
	converge.FaultHandOver: {
		oracle: converge.OracleDuplicates,
		wrong: replacing(func(ctx context.Context, r *parent, found *corev1.ConfigMap) error {
			// region hand-over-wrong
			// Wrong: a late request of the previous process may delete the object that this one recreated.
			return client.IgnoreNotFound(r.Delete(ctx, found))
			// endregion
		}),
		right: replacing(func(ctx context.Context, r *parent, found *corev1.ConfigMap) error {
			// region hand-over-right
			// Right: the precondition limits the delete to that object.
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
