// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// controlBy sets owner as the controller of obj if obj has no controller. It is like
// controllerutil.SetControllerReference, but the type of the owner need not be in the scheme.
func controlBy(ctx context.Context, owner, obj client.Object) error {
	if metav1.GetControllerOfNoCopy(obj) != nil {
		return nil
	}
	gvk, err := ownerKind(ctx, owner)
	if err != nil {
		return fmt.Errorf("owner reference to %T: %w", owner, err)
	}
	if ns := owner.GetNamespace(); ns != "" {
		switch obj.GetNamespace() {
		case ns:
		case "":
			if namespaced, err := RetrieveConfigOrDie(ctx).IsObjectNamespaced(obj); err == nil && namespaced {
				return fmt.Errorf(
					"%s %q has no namespace: set it to the namespace of its owner, %q", typeName(obj), obj.GetName(), ns,
				)
			}
			return fmt.Errorf(
				"cluster-scoped resource must not have a namespace-scoped owner, owner's namespace %s%s", ns, noOwner,
			)
		default:
			return fmt.Errorf(
				"cross-namespace owner references are disallowed, owner's namespace %s, obj's namespace %s%s",
				ns, obj.GetNamespace(), noOwner,
			)
		}
	}

	ref := *metav1.NewControllerRef(owner, gvk)
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if sameOwner(refs[i], ref) {
			refs[i] = ref
			obj.SetOwnerReferences(refs)
			return nil
		}
	}
	obj.SetOwnerReferences(append(refs, ref))
	return nil
}

// noOwner says what to do about a child that cannot have an owner reference. It follows the texts of
// controllerutil.SetControllerReference, which users' tests compare.
const noOwner = ": manage the child without one, with a Finalizer, ListOptions and OurChild"

// ownerKind returns the kind of an owner. For the reconciled resource it is the original kind: after a cast, the Go
// type may belong to another kind.
func ownerKind(ctx context.Context, owner client.Object) (schema.GroupVersionKind, error) {
	s := scopeFrom(ctx)
	if original := s.originalResourceType; !nilcheck.IsNilPointer(original) && s.originalConfig != nil &&
		s.isReconciled(owner) {
		if gvk, err := s.originalConfig.GroupVersionKindFor(original); err == nil {
			return gvk, nil
		}
	}
	return RetrieveConfigOrDie(ctx).GroupVersionKindFor(owner)
}

// sameOwner compares references like the API server: by group, kind and name, not by version.
func sameOwner(a, b metav1.OwnerReference) bool {
	aGV, aErr := schema.ParseGroupVersion(a.APIVersion)
	bGV, bErr := schema.ParseGroupVersion(b.APIVersion)
	return aErr == nil && bErr == nil && aGV.Group == bGV.Group && a.Kind == b.Kind && a.Name == b.Name
}
