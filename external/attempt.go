// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/internal/objects/nilcheck"
	"trueup.dev/reconcilers"
)

// NameToken returns a function for [Resource].Token that returns the scope, the namespace and the name of a Kubernetes
// resource, for example "production/shop/photos". A resource that is restored from a backup, or created again after its
// external resource was retained, has the same token. The scope must be unique among the clusters that use the same
// external system: otherwise the resources of two clusters share an external resource.
func NameToken[Type client.Object](scope string) func(Type) string {
	return func(resource Type) string { return scope + "/" + name(resource) }
}

// attemptSuffix follows the finalizer in the annotation that has the number of the attempt.
const attemptSuffix = "-attempt"

func (r *Resource[T, E]) attemptKey() string { return r.Finalizer + attemptSuffix }

// attempt returns how many tokens of the Kubernetes resource are used up.
func (r *Resource[T, E]) attempt(resource T) int {
	n, err := strconv.Atoi(resource.GetAnnotations()[r.attemptKey()])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// token returns the token of the current attempt.
func (r *Resource[T, E]) token(resource T) string {
	token := r.Token(resource)
	if n := r.attempt(resource); n > 0 && !r.named {
		token += "-" + strconv.Itoa(n)
	}
	return token
}

// startAttempt gives the next external resource another token than one that Create has returned, and that does not
// exist. The token is recorded before it is used: it must be known as long as its external resource may exist.
func (r *Resource[T, E]) startAttempt(ctx context.Context, resource T, n int) error {
	if r.attempt(resource) < n { // otherwise the response of an earlier patch was lost
		annotations := maps.Clone(resource.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[r.attemptKey()] = strconv.Itoa(n)
		if err := r.annotate(ctx, resource, annotations); err != nil {
			return fmt.Errorf("record the next attempt for %s: %w", r.Name, err)
		}
	}
	event(ctx, resource, corev1.EventTypeWarning, "ExternalMissing",
		"Create has returned %s %s, which does not exist; the next token is %s", r.Name, r.ID(resource), r.token(resource))
	r.SetID(resource, "")
	r.memory.forget(resource)
	return nil
}

// annotate patches the annotations of the Kubernetes resource, unless it has changed since it was read.
func (r *Resource[T, E]) annotate(ctx context.Context, resource T, annotations map[string]string) error {
	config, err := reconcilers.RetrieveOriginalConfig(ctx)
	if err != nil {
		return err
	}
	var current client.Object = resource
	if original := reconcilers.RetrieveOriginalResourceType(ctx); !nilcheck.IsNilPointer(original) {
		current = original // the resource may have been cast
	}
	current = empty.Like(current)
	current.SetNamespace(resource.GetNamespace())
	current.SetName(resource.GetName())
	current.SetResourceVersion(resource.GetResourceVersion())
	current.SetAnnotations(resource.GetAnnotations())
	desired := current.DeepCopyObject().(client.Object)
	desired.SetAnnotations(annotations)
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := config.Patch(ctx, desired, patch); err != nil {
		return err
	}
	resource.SetAnnotations(annotations)
	resource.SetResourceVersion(desired.GetResourceVersion())
	return nil
}
