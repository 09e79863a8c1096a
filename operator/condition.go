// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/objectstatus"
	"trueup.dev/reconcilers"
)

// ConditionRetriesExhausted is the type of the condition that is true after a handler has given up on a resource.
// Otherwise the condition is absent.
const ConditionRetriesExhausted = "RetriesExhausted"

// maxConflicts is the maximum number of attempts to write the condition when the write conflicts.
const maxConflicts = 3

// observedGeneration returns a pointer to the observedGeneration in the status of a resource, or nil.
func observedGeneration(obj client.Object) *int64 {
	return objectstatus.Of(obj).ObservedGeneration(obj)
}

// conditionsOf returns a pointer to the conditions in the status of a resource, or nil.
func conditionsOf(obj client.Object) *[]metav1.Condition { return objectstatus.Of(obj).Conditions(obj) }

// reflect updates the condition of the resource after an attempt. All handlers of a resource share the condition.
func (r *WithEdge[T]) reflect(ctx context.Context, resource T, action ReconcileAction, again *pending) error {
	conditions := conditionsOf(resource)
	exhausted := again != nil && again.exhausted
	switch {
	case conditions == nil || r.place.foreignStatus:
		return nil
	case exhausted && again.reported && meta.IsStatusConditionTrue(*conditions, ConditionRetriesExhausted):
		// Another handler may have set the condition: do not replace it repeatedly.
		return nil
	case !exhausted && (meta.FindStatusCondition(*conditions, ConditionRetriesExhausted) == nil ||
		r.anyGaveUp(client.ObjectKeyFromObject(resource))):
		return nil
	}
	change := func(obj client.Object) bool {
		if !exhausted {
			return meta.RemoveStatusCondition(conditionsOf(obj), ConditionRetriesExhausted)
		}
		return meta.SetStatusCondition(conditionsOf(obj), metav1.Condition{
			Type: ConditionRetriesExhausted, Status: metav1.ConditionTrue, Reason: action.String() + "Failed",
			Message: truncated(again.err.Error()), ObservedGeneration: obj.GetGeneration(),
		})
	}
	if again != nil {
		again.reported = true
	}
	if !r.place.patchesStatus {
		change(resource)
		return nil
	}
	return patchConditions(ctx, resource, change)
}

// truncated truncates a text to the length that is used for condition messages.
func truncated(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// anyGaveUp reports whether this handler, or another handler of the same controller, has given up on a resource.
func (r *WithEdge[T]) anyGaveUp(key types.NamespacedName) bool {
	if r.place.gaveUp != nil {
		return r.place.gaveUp(key)
	}
	return r.gaveUp(key)
}

func (r *WithEdge[T]) gaveUp(key types.NamespacedName) (gaveUp bool) {
	r.ledger.with(key, func(rec *record) { gaveUp = rec.pending != nil && rec.pending.exhausted })
	return gaveUp
}

// patchConditions changes the conditions on the API server. It reads the resource first, because handlers may have
// written the status themselves.
func patchConditions(ctx context.Context, resource client.Object, change func(client.Object) bool) error {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	reader := pastCache(config)
	for range maxConflicts {
		current := empty.Like(resource)
		if err = reader.Get(ctx, client.ObjectKeyFromObject(resource), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		if current.GetUID() != resource.GetUID() {
			return nil
		}
		before := current.DeepCopyObject().(client.Object)
		if !change(current) {
			return nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err = config.Status().Patch(ctx, current, patch); !apierrs.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
	return err
}

// writeObserved writes the generation of a resource to its status. The UID in the patch protects a new resource of the
// same name.
func writeObserved(ctx context.Context, resource client.Object) error {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(
		nil, `{"metadata":{"uid":%q},"status":{"observedGeneration":%d}}`, resource.GetUID(), resource.GetGeneration(),
	)
	target := empty.Like(resource)
	target.SetNamespace(resource.GetNamespace())
	target.SetName(resource.GetName())
	err = config.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if apierrs.IsNotFound(err) || apierrs.IsInvalid(err) || apierrs.IsConflict(err) {
		return nil
	}
	return err
}

// isDivided reports whether the resources are divided among replicas, so that the cache may lack one that exists.
func isDivided(ctx context.Context) bool {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	return err == nil && config.Shard != nil
}

// isStored reports whether a resource still exists on the API server.
func isStored(ctx context.Context, resource client.Object) (bool, error) {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return false, err
	}
	current := empty.Like(resource)
	err = pastCache(config).Get(ctx, client.ObjectKeyFromObject(resource), current)
	return err == nil && current.GetUID() == resource.GetUID(), client.IgnoreNotFound(err)
}

func pastCache(config reconcilers.Config) client.Reader {
	if config.APIReader != nil {
		return config.APIReader
	}
	return config.Client
}
