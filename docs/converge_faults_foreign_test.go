// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

// foreignLessons are about changes by other clients just before a write.
var foreignLessons = map[converge.Fault]lesson{
	converge.FaultConflict: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			found := &corev1.ConfigMap{}
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), found); apierrs.IsNotFound(err) {
				return r.Create(ctx, child)
			} else if err != nil || found.Data["value"] == child.Data["value"] {
				return err
			}
			// region conflict-wrong
			// Wrong: without a version there are no conflicts, and changes of other clients are lost.
			found.Data = child.Data
			found.ResourceVersion = ""
			return r.Update(ctx, found)
			// endregion
		}, changed()...),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			found := &corev1.ConfigMap{}
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), found); apierrs.IsNotFound(err) {
				return r.Create(ctx, child)
			} else if err != nil || found.Data["value"] == child.Data["value"] {
				return err
			}
			// region conflict-right
			// Right: return the conflict; the next attempt reads again. Or send a patch.
			found.Data = child.Data
			return r.Update(ctx, found)
			// endregion
		}, changed()...),
	},
	converge.FaultExists: {
		oracle: converge.OracleQuiescence,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/done"] == "true" {
				return nil
			}
			// region exists-wrong
			// Wrong: if an earlier attempt took effect late, this one fails forever.
			if err := r.Create(ctx, child); err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/done", "true")
			return r.Update(ctx, owner)
			// endregion
		}),
		right: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region exists-right
			// Right: read the existing object instead of recording the creation.
			err := r.Create(ctx, child)
			if apierrs.IsAlreadyExists(err) {
				err = r.Live.Get(ctx, client.ObjectKeyFromObject(child), child)
			}
			return err
			// endregion
		}),
	},
	converge.FaultTaken: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/done"] == "true" {
				return nil
			}
			// region taken-wrong
			// Wrong: the object of another client counts as done, but is deleted later.
			if err := client.IgnoreAlreadyExists(r.Create(ctx, child)); err != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/done", "true")
			return r.Update(ctx, owner)
			// endregion
		}),
		right: copying(ownOrFail),
	},
	converge.FaultTakenUnnoticed: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, _ *corev1.Secret, child *corev1.ConfigMap) error {
			// region taken-unnoticed-wrong
			// Wrong: no event reports that the name is free, because the object had another owner.
			return client.IgnoreAlreadyExists(r.Create(ctx, child))
			// endregion
		}),
		right: copying(ownOrFail),
	},
	converge.FaultDeleted: {
		oracle: converge.OracleEndState,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			if owner.Annotations["example.com/synced"] == child.Data["value"] {
				return nil
			}
			if err := r.Get(ctx, client.ObjectKeyFromObject(child), &corev1.ConfigMap{}); apierrs.IsNotFound(err) {
				if err := r.Create(ctx, child); err != nil {
					return err
				}
			}
			// region deleted-wrong
			// Wrong: a deleted object is not up to date.
			if err := r.Update(ctx, child); client.IgnoreNotFound(err) != nil {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/synced", child.Data["value"])
			return r.Update(ctx, owner)
			// endregion
		}, changed()...),
		right: copying(createOrUpdate, changed()...),
	},
	converge.FaultRecreated: {
		oracle: converge.OracleQuiescence,
		wrong: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region recreated-wrong
			// Wrong: the UID changes, for example when a backup is restored.
			err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
			if uid := owner.Annotations["example.com/child"]; err == nil && uid != "" && types.UID(uid) != child.UID {
				return fmt.Errorf("%s is not the one that was created", child.Name)
			}
			// endregion
			switch {
			case apierrs.IsNotFound(err):
				err = r.Create(ctx, child)
			case err == nil && child.Data["value"] != string(owner.Data["value"]):
				child.Data = map[string]string{"value": string(owner.Data["value"])}
				err = r.Update(ctx, child)
			}
			if err != nil || owner.Annotations["example.com/child"] != "" {
				return err
			}
			metav1.SetMetaDataAnnotation(&owner.ObjectMeta, "example.com/child", string(child.UID))
			return r.Update(ctx, owner)
		}, changed()...),
		right: copying(func(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
			// region recreated-right
			// Right: the owner reference identifies the owner.
			found := &corev1.ConfigMap{}
			err := r.Get(ctx, client.ObjectKeyFromObject(child), found)
			if err == nil && !metav1.IsControlledBy(found, owner) {
				return fmt.Errorf("%s is owned by another object", child.Name)
			}
			// endregion
			return createOrUpdate(ctx, r, owner, child)
		}, changed()...),
	},
}

// ownOrFail creates an object, and returns an error until the owner controls it.
func ownOrFail(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
	// region taken-right
	// Right: return an error, which is retried until the owner controls the object.
	err := r.Create(ctx, child)
	if apierrs.IsAlreadyExists(err) {
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(child), child)
	}
	if err == nil && !metav1.IsControlledBy(child, owner) {
		err = fmt.Errorf("ConfigMap %s is owned by another object", child.Name)
	}
	return err
	// endregion
}

// createOrUpdate creates or updates the child with the value of its owner.
func createOrUpdate(ctx context.Context, r *parent, owner *corev1.Secret, child *corev1.ConfigMap) error {
	// region deleted-right
	// Right: read the child each time. If it is deleted before the write, the error leads to a retry.
	_, err := controllerutil.CreateOrUpdate(ctx, r, child, func() error {
		child.Data = map[string]string{"value": string(owner.Data["value"])}
		return controllerutil.SetControllerReference(owner, child, r.Scheme())
	})
	return err
	// endregion
}
