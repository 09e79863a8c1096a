// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// ErrMissingResourceVersion is returned for updates of objects without a resource version. Without it an update could
// overwrite the change of another client.
var ErrMissingResourceVersion = errors.New("resource version is required: update an object that was read from the API")

// upsertAttempts is the number of times that Upsert tries to write an object that other clients write or delete at the
// same time.
const upsertAttempts = 3

// Add creates the object. An object without a name needs a generateName.
func (s *TypedStore[T]) Add(ctx context.Context, obj T) (T, error) {
	var none T
	if nilcheck.IsNilPointer(obj) {
		return none, s.failed("add", Identifier{}, errors.New("object must not be nil"))
	}
	id := IdentifierOf(obj)
	named := id
	if generate := obj.GetGenerateName(); named.Name == "" {
		named.Name = generate
	}
	out, err := s.outgoing(named, obj)
	if err == nil {
		out.SetName(id.Name)
		err = s.client.Create(ctx, out)
	}
	return s.result("add", named, out, err)
}

// Update replaces the object. It returns a conflict if the object no longer has the resource version of obj. If the
// kind has a status subresource, the status is unchanged.
func (s *TypedStore[T]) Update(ctx context.Context, id Identifier, obj T) (T, error) {
	out, err := s.outgoing(id, obj)
	if err == nil {
		err = ErrMissingResourceVersion
		if out.GetResourceVersion() != "" {
			err = s.client.Update(ctx, out)
		}
	}
	return s.result("update", id, out, err)
}

// Upsert creates the object or replaces an existing one. If obj has a resource version and the object exists, Upsert is
// an Update and returns a conflict if the object has changed since. Without a resource version the last writer wins:
// obj replaces the whole object, including finalizers and owner references. Use [UpdateObject] or [TypedStore.Apply] to
// change a part.
//
// If the object no longer exists, it is created. Resource version and UID of obj are ignored then.
func (s *TypedStore[T]) Upsert(ctx context.Context, id Identifier, obj T) (T, error) {
	outgoing, err := s.outgoing(id, obj)
	if err != nil {
		return s.result("upsert", id, outgoing, err)
	}
	out, source := outgoing, s.source
	if outgoing.GetResourceVersion() != "" {
		out = copyOf(outgoing)
		if err = s.client.Update(ctx, out); !apierrs.IsNotFound(err) {
			return s.result("upsert", id, out, err)
		}
		outgoing.SetResourceVersion("")
		outgoing.SetUID("")
		source = Live // the cache may still have the object
	}
	for range upsertAttempts {
		out = copyOf(outgoing)
		existing := s.kind.ZeroValue()
		if err = s.reader(source).Get(ctx, id.NamespacedName(), existing); apierrs.IsNotFound(err) {
			err = s.client.Create(ctx, out)
		} else if err == nil {
			out.SetResourceVersion(existing.GetResourceVersion())
			err = s.client.Update(ctx, out)
		}
		if !apierrs.IsAlreadyExists(err) && !apierrs.IsConflict(err) && !apierrs.IsNotFound(err) {
			break
		}
		source = Live // the cached object was outdated
	}
	return s.result("upsert", id, out, err)
}

// Delete requests the deletion of the object, which takes place immediately unless it has finalizers. It returns an
// error if the object does not exist. Options are the options of clients, preconditions for example.
func (s *TypedStore[T]) Delete(ctx context.Context, id Identifier, opts ...client.DeleteOption) error {
	err := s.check(id)
	if err == nil {
		err = s.client.Delete(ctx, s.kind.object(id), opts...)
	}
	if err != nil {
		return s.failed("delete", id, err)
	}
	return nil
}

// ForceDelete is like [TypedStore.Delete], but returns no error if the object does not exist. Finalizers are respected.
func (s *TypedStore[T]) ForceDelete(ctx context.Context, id Identifier, opts ...client.DeleteOption) error {
	return client.IgnoreNotFound(s.Delete(ctx, id, opts...))
}

// Patch sends a ready-made patch, for example a [types.MergePatchType] or a [types.JSONPatchType].
func (s *TypedStore[T]) Patch(
	ctx context.Context, id Identifier, kind types.PatchType, data []byte, opts ...client.PatchOption,
) (T, error) {
	out, err := s.kind.object(id).(T), s.check(id)
	if err == nil {
		err = s.client.Patch(ctx, out, client.RawPatch(kind, data), opts...)
	}
	return s.result("patch", id, out, err)
}

// Merge sends the difference between two states of an object as a merge patch. Fields that are equal in both are not
// written. Lists are replaced as a whole. Merge returns no conflicts, unless the resource versions of before and after
// differ.
func (s *TypedStore[T]) Merge(ctx context.Context, before, after T, opts ...client.PatchOption) (T, error) {
	var none T
	if nilcheck.IsNilPointer(before) || nilcheck.IsNilPointer(after) {
		return none, s.failed("merge", Identifier{}, errors.New("object must not be nil"))
	}
	id := IdentifierOf(after)
	original, err := s.outgoing(id, before)
	out, aerr := s.outgoing(id, after)
	if err = errors.Join(err, aerr); err == nil {
		err = s.client.Patch(ctx, out, client.MergeFrom(original), opts...)
	}
	return s.result("merge", id, out, err)
}

// Apply applies all fields of obj by server-side apply. Afterwards owner owns these fields. Fields that it owned before
// and that are not in obj are removed. A field with another owner is a conflict, which [client.ForceOwnership]
// resolves.
//
// The fields of obj are the fields of its JSON encoding: a field without omitempty or omitzero is applied even with its
// zero value.
func (s *TypedStore[T]) Apply(
	ctx context.Context, obj T, owner client.FieldOwner, opts ...client.ApplyOption,
) (T, error) {
	var none T
	if nilcheck.IsNilPointer(obj) {
		return none, s.failed("apply", Identifier{}, errors.New("object must not be nil"))
	}
	id := IdentifierOf(obj)
	out, err := s.outgoing(id, obj)
	if err == nil {
		err = s.apply(ctx, out, append([]client.ApplyOption{owner}, opts...))
	}
	return s.result("apply", id, out, err)
}

func (s *TypedStore[T]) apply(ctx context.Context, obj T, opts []client.ApplyOption) error {
	obj.SetManagedFields(nil) // the API server rejects managed fields in an apply
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	configuration := &unstructured.Unstructured{Object: content}
	if err := s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), opts...); err != nil {
		return err
	}
	return replace(obj, configuration.Object)
}

// replace replaces the content of obj.
func replace(obj Object, content map[string]any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = content
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}
