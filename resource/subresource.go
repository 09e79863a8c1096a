// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/nilcheck"
)

// SubresourceName is the name of a subresource, which is written separately.
type SubresourceName string

const (
	// SubresourceStatus is the observed state of an object.
	SubresourceStatus SubresourceName = "status"
	// SubresourceScale is the number of replicas of an object. Its Go type is autoscaling/v1 Scale, for all kinds.
	SubresourceScale SubresourceName = "scale"
)

// UpdateSubresource replaces a subresource of the object. It returns a conflict if the object no longer has the
// resource version of obj. All other parts of obj are ignored.
//
// In a store of [Object], obj may also be a subresource with its own Go type, a Scale for example. It must have the
// name of the object.
func (s *TypedStore[T]) UpdateSubresource(ctx context.Context, id Identifier, name SubresourceName, obj T) (T, error) {
	verb := "update " + string(name) + " of"
	var none T
	if name == "" {
		return none, s.failed("update", id, errors.New("name of the subresource is required"))
	}
	if body, ok := s.body(obj); ok {
		stored, err := s.updateBody(ctx, id, name, body)
		if err != nil {
			return none, s.failed(verb, id, err)
		}
		return stored.(T), nil
	}
	out, err := s.outgoing(id, obj)
	if err == nil {
		err = ErrMissingResourceVersion
		if out.GetResourceVersion() != "" {
			err = s.client.SubResource(string(name)).Update(ctx, out)
		}
	}
	return s.result(verb, id, out, err)
}

// body returns obj if it is not an object of the kind but the body of a subresource.
func (s *TypedStore[T]) body(obj T) (Object, bool) {
	if nilcheck.IsNilPointer(obj) || s.kind.is(obj) {
		return nil, false
	}
	gvk, err := s.client.GroupVersionKindFor(obj)
	return obj, err == nil && gvk.GroupKind() != s.kind.GroupKind()
}

func (s *TypedStore[T]) updateBody(
	ctx context.Context, id Identifier, name SubresourceName, body Object,
) (Object, error) {
	problems := []error{s.check(id)}
	if of := IdentifierOf(body); of != id {
		problems = append(problems, fmt.Errorf("the subresource belongs to %q", of))
	}
	if body.GetResourceVersion() == "" {
		problems = append(problems, ErrMissingResourceVersion)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	out := copyOf(body)
	return out, s.client.SubResource(string(name)).Update(ctx, s.kind.object(id), client.WithSubResourceBody(out))
}
