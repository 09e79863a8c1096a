// SPDX-License-Identifier: Apache-2.0

package reconcilers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/validation"
)

// applyDefaults sets the defaults of a resource with the first interface that the resource implements.
func applyDefaults[T client.Object](ctx context.Context, resource T) error {
	switch resource := any(resource).(type) {
	case validation.Defaulter:
		return resource.Default(ctx)
	case interface{ Default() }:
		resource.Default()
		return nil
	}
	switch defaulter := any(resource).(type) {
	case admission.Defaulter[T]:
		return defaulter.Default(ctx, resource)
	case admission.Defaulter[runtime.Object]:
		return defaulter.Default(ctx, resource)
	}
	return nil
}
