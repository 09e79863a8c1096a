// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noteUID remembers the uid of the reconciled resource. A root reconciler calls it once the resource is known, before
// it calls anything below.
func noteUID(ctx context.Context, uid types.UID) {
	if s, ok := ctx.Value(scopeKey{}).(*scope); ok {
		s.uid = uid
	}
}

// isReconciled reports whether obj is the reconciled resource, whatever it has been cast to since it was loaded. Any
// other object, even one of the same namespace and name, has to be written as what it is. What is not known is not
// compared.
func (s *scope) isReconciled(obj client.Object) bool {
	if s.request != (Request{}) && client.ObjectKeyFromObject(obj) != s.request.NamespacedName {
		return false
	}
	original := s.originalResourceType
	if isNil(original) {
		return true
	}
	uid := s.uid
	if uid == "" {
		// A table test of a sub reconciler knows the resource by its type.
		uid = original.GetUID()
	}
	sameUID := uid != "" && obj.GetUID() == uid
	if uid != "" && obj.GetUID() != "" && !sameUID {
		return false
	}
	return s.isOfReconciledKind(obj, sameUID)
}

// isOfReconciledKind compares groups and kinds. What obj says itself decides, since a cast keeps the kind that the
// resource was loaded as; then the uid, then the scheme.
func (s *scope) isOfReconciledKind(obj client.Object, sameUID bool) bool {
	original := s.originalResourceType
	kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
	loaded := original.GetObjectKind().GroupVersionKind().GroupKind()
	if reflect.TypeOf(obj) == reflect.TypeOf(original) {
		// A Go type stands for one kind, unless it is one that must carry its kind.
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
	return !isNil(s.resourceType) && reflect.TypeOf(obj) == reflect.TypeOf(s.resourceType)
}

// kindInScheme returns the kind of the Go type of an object, and nothing when no config knows it.
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

// asLoaded returns what to write obj as, which is an object without content, and the config to write it with: the
// reconciled resource as it was loaded, by the config that loaded it, and any other object as it is, by the current
// config.
func asLoaded(ctx context.Context, obj client.Object) (client.Object, Config, error) {
	s := scopeFrom(ctx)
	if s.isReconciled(obj) {
		config, err := RetrieveOriginalConfig(ctx)
		if isNil(s.originalResourceType) {
			return blankLike(obj), config, err
		}
		return blankLike(s.originalResourceType), config, err
	}
	config, err := RetrieveConfig(ctx)
	if err != nil {
		config, err = RetrieveOriginalConfig(ctx)
	}
	return blankLike(obj), config, err
}
