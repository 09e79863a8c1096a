// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	v1 "trueup.dev/examples/mykind/api/v1"
	"trueup.dev/logging"
	"trueup.dev/operator"
	"trueup.dev/resource"
	"trueup.dev/simple"
)

// NewMyKindWatcher returns a watcher for MyKind. It leaves all errors to the retry policy.
func NewMyKindWatcher(infoClient InfoClient, store *resource.TypedStore[*v1.MyKind]) operator.ResourceWatcher {
	apply := func(ctx context.Context, obj resource.Object) error {
		mykind, ok := obj.(*v1.MyKind)
		if !ok {
			return operator.NewCannotCastError[*v1.MyKind](obj)
		}
		// The status records what the other system has, so that nothing is reported again after a restart.
		if mykind.GetGeneration() == mykind.Status.LastAppliedGeneration {
			return nil
		}
		if err := infoClient.ApplyInfo(
			mykind.GetNamespace(), mykind.GetName(), mykind.Spec.SomeInfo, mykind.Spec.OtherInfo,
		); err != nil {
			return err
		}
		mykind.Status.LastAppliedGeneration = mykind.GetGeneration()
		_, err := store.UpdateSubresource(ctx, mykind.GetStaticMetadata().Identifier(), resource.SubresourceStatus, mykind)
		return err
	}
	return &simple.Watcher{
		AddFunc: func(ctx context.Context, obj resource.Object) error {
			logging.FromContext(ctx).Info("Add event", "name", obj.GetName(), "generation", obj.GetGeneration())
			return apply(ctx, obj)
		},
		UpdateFunc: func(ctx context.Context, oldObj, newObj resource.Object) error {
			logging.FromContext(ctx).Info(
				"Update event", "name", newObj.GetName(), "generation", newObj.GetGeneration(), "was", oldObj.GetGeneration(),
			)
			return apply(ctx, newObj)
		},
		DeleteFunc: func(ctx context.Context, obj resource.Object) error {
			logging.FromContext(ctx).Info("Delete event", "name", obj.GetName(), "generation", obj.GetGeneration())
			return infoClient.Delete(obj.GetNamespace(), obj.GetName())
		},
		SyncFunc: apply, // the app has restarted
	}
}
