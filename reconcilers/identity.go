// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
)

// noteUID records the UID of the reconciled resource. A root reconciler calls it when the UID is known, before it calls
// nested reconcilers.
func noteUID(ctx context.Context, uid types.UID) {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		s.uid = uid
	}
}

// isReconciled reports whether obj is the reconciled resource, even if the resource was cast to another type. Any other
// object, even with the same namespace and name, must be written with its own type. Unknown fields are not compared.
func (s *scope) isReconciled(obj client.Object) bool {
	if s.request != (Request{}) && client.ObjectKeyFromObject(obj) != s.request.NamespacedName {
		return false
	}
	original := s.originalResourceType
	if nilcheck.IsNilPointer(original) {
		return true
	}
	uid := s.uid
	if uid == "" {
		// A table test of a sub reconciler sets the resource in the type.
		uid = original.GetUID()
	}
	sameUID := uid != "" && obj.GetUID() == uid
	if uid != "" && obj.GetUID() != "" && !sameUID {
		return false
	}
	return s.isOfReconciledKind(obj, sameUID)
}

// isOfReconciledKind compares groups and kinds. The kind in obj has precedence, because a cast keeps the kind with
// which the resource was loaded. Then the UID decides, then the scheme.
func (s *scope) isOfReconciledKind(obj client.Object, sameUID bool) bool {
	original := s.originalResourceType
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	loaded := original.GetObjectKind().GroupVersionKind().GroupKind()
	if reflect.TypeOf(obj) == reflect.TypeOf(original) {
		// A Go type represents one kind, unless objects of the type must carry their kind.
		return kind.Empty() || loaded.Empty() || kind == loaded
	}
	if loaded.Empty() {
		loaded = s.kindInScheme(original)
	}
	switch {
	case loaded.Empty():
		return sameUID
	case !kind.Empty():
		return kind == loaded
	case sameUID:
		return true
	}
	if kind = s.kindInScheme(obj); !kind.Empty() {
		return kind == loaded
	}
	return !nilcheck.IsNilPointer(s.resourceType) && reflect.TypeOf(obj) == reflect.TypeOf(s.resourceType)
}

// kindInScheme returns the kind of the Go type of an object, or an empty kind if no config knows the type.
func (s *scope) kindInScheme(obj client.Object) schema.GroupKind {
	for _, config := range []*Config{s.originalConfig, s.config} {
		if config == nil || config.Client == nil {
			continue
		}
		if gvk, err := config.GroupVersionKindFor(obj); err == nil {
			return gvk.GroupKind()
		}
	}
	return schema.GroupKind{}
}

// asLoaded returns an empty object of the type to write obj with, and the config to use. For the reconciled resource
// these are the original type and the original config. For any other object they are the type of obj and the current
// config.
func asLoaded(ctx context.Context, obj client.Object) (client.Object, Config, error) {
	s := scopeFrom(ctx)
	if s.isReconciled(obj) {
		config, err := RetrieveOriginalConfig(ctx)
		if nilcheck.IsNilPointer(s.originalResourceType) {
			return empty.Like(obj), config, err
		}
		return empty.Like(s.originalResourceType), config, err
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		config, err = RetrieveOriginalConfig(ctx)
	}
	return empty.Like(obj), config, err
}

// identityAsLoaded is asLoaded that also sets the fields which a patch of the metadata and an event need.
func identityAsLoaded(ctx context.Context, obj client.Object) (client.Object, Config, error) {
	current, config, err := asLoaded(ctx, obj)
	if err != nil {
		return nil, config, err
	}
	current.SetNamespace(obj.GetNamespace())
	current.SetName(obj.GetName())
	current.SetUID(obj.GetUID())
	current.SetResourceVersion(obj.GetResourceVersion())
	current.SetGeneration(obj.GetGeneration())
	return current, config, nil
}
