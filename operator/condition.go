// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// ConditionRetriesExhausted is the type of the condition that is true while a handler has given up on a resource. It is
// not there otherwise.
const ConditionRetriesExhausted = "RetriesExhausted"

// conflicts is how often the condition is written again when somebody else was faster.
const conflicts = 3

// statusFields are the fields of a status that have a meaning here, nil where the Go type of a resource has none.
type statusFields struct {
	observedGeneration *int64
	conditions         *[]metav1.Condition
}

func statusOf(obj client.Object) statusFields {
	value := reflect.ValueOf(obj).Elem()
	if value.Kind() != reflect.Struct {
		return statusFields{}
	}
	status := fieldOf(value, "Status")
	if status.Kind() == reflect.Pointer {
		status = status.Elem()
	}
	if status.Kind() != reflect.Struct {
		return statusFields{}
	}
	fields := statusFields{}
	if field := fieldOf(status, "ObservedGeneration"); field.IsValid() {
		fields.observedGeneration, _ = field.Addr().Interface().(*int64)
	}
	if field := fieldOf(status, "Conditions"); field.IsValid() {
		fields.conditions, _ = field.Addr().Interface().(*[]metav1.Condition)
	}
	return fields
}

// fieldOf returns a field of a struct. It is not valid when there is none, or it is in an embedded struct that is nil.
func fieldOf(value reflect.Value, name string) reflect.Value {
	field, ok := value.Type().FieldByName(name)
	if !ok {
		return reflect.Value{}
	}
	found, err := value.FieldByIndexErr(field.Index)
	if err != nil {
		return reflect.Value{}
	}
	return found
}

// reflect keeps the condition of the resource in line with what its attempts have come to. It is shared by all handlers
// of a resource.
func (r *WithEdge[T]) reflect(ctx context.Context, resource T, action ReconcileAction, again *pending) error {
	conditions := statusOf(resource).conditions
	exhausted := again != nil && again.exhausted
	switch {
	case conditions == nil || r.place.foreignStatus:
		return nil
	case exhausted && again.told && meta.IsStatusConditionTrue(*conditions, ConditionRetriesExhausted):
		// It may be that of another handler, which must not be replaced again and again.
		return nil
	case !exhausted && (meta.FindStatusCondition(*conditions, ConditionRetriesExhausted) == nil ||
		r.anyGaveUp(client.ObjectKeyFromObject(resource))):
		return nil
	}
	change := func(obj client.Object) bool {
		if !exhausted {
			return meta.RemoveStatusCondition(statusOf(obj).conditions, ConditionRetriesExhausted)
		}
		return meta.SetStatusCondition(statusOf(obj).conditions, metav1.Condition{
			Type: ConditionRetriesExhausted, Status: metav1.ConditionTrue, Reason: action.String() + "Failed",
			Message: shortened(again.err.Error()), ObservedGeneration: obj.GetGeneration(),
		})
	}
	if again != nil {
		again.told = true
	}
	if !r.place.patchesStatus {
		change(resource)
		return nil
	}
	return patchConditions(ctx, resource, change)
}

// shortened is a text that a condition may have.
func shortened(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// anyGaveUp is true when this handler has given up on a resource, or another one beside it.
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

// patchConditions changes the conditions of a resource as it is on the API server: handlers may have written the status
// themselves.
func patchConditions(ctx context.Context, resource client.Object, change func(client.Object) bool) error {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	reader := pastCache(config)
	for range conflicts {
		current := blankLike(resource)
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

// observe writes the generation of a resource to its status. It is not written onto another resource of the same name.
func observe(ctx context.Context, resource client.Object) error {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(
		nil, `{"metadata":{"uid":%q},"status":{"observedGeneration":%d}}`, resource.GetUID(), resource.GetGeneration(),
	)
	target := blankLike(resource)
	target.SetNamespace(resource.GetNamespace())
	target.SetName(resource.GetName())
	err = config.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch))
	if apierrs.IsNotFound(err) || apierrs.IsInvalid(err) || apierrs.IsConflict(err) {
		return nil
	}
	return err
}

// isStored asks the API server whether a resource is still there.
func isStored(ctx context.Context, resource client.Object) (bool, error) {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return false, err
	}
	current := blankLike(resource)
	err = pastCache(config).Get(ctx, client.ObjectKeyFromObject(resource), current)
	return err == nil && current.GetUID() == resource.GetUID(), client.IgnoreNotFound(err)
}

func pastCache(config reconcilers.Config) client.Reader {
	if config.APIReader != nil {
		return config.APIReader
	}
	return config.Client
}

// blankLike returns a new object of the same Go type and kind.
func blankLike[T client.Object](obj T) T {
	blank := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(T)
	blank.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return blank
}
