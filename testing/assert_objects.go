// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/objects/empty"
	"trueup.dev/testing/internal/literal"
)

// objects returns the expectation about the objects of actions.
func (c *ExpectConfig) objects(
	field, item string, expected []client.Object, actions []objectAction, diff func(
		expected, observed client.Object,
	) string,
) expectation[client.Object] {
	e := expectation[client.Object]{
		field: field, item: item, elem: "client.Object",
		expected: each(expected, unwrapped),
		observed: each(actions, func(action objectAction) client.Object { return action.GetObject().(client.Object) }),
	}
	for i, observed := range e.observed {
		if i < len(e.expected) && e.expected[i] != nil {
			e.expected[i], e.observed[i] = c.normalize(e.expected[i], observed)
		} else {
			_, e.observed[i] = c.normalize(empty.Like(observed), observed)
		}
	}
	e.diff = func(expected, observed client.Object) string {
		if expected == nil {
			return "the expected object is nil"
		}
		return diff(expected, observed)
	}
	e.tidy = func(observed client.Object) client.Object { return literal.Compared(observed, diff) }
	return e
}

// unwrapped returns a copy of an object, see unwrap. It returns nil for no object.
func unwrapped(obj client.Object) client.Object {
	obj, _ = unwrap(obj)
	return obj
}

// normalize returns the parts of two objects to compare.
func (c *ExpectConfig) normalize(expected, observed client.Object) (client.Object, client.Object) {
	if api := c.open().api; api != nil && api.normalize != nil {
		return api.normalize(expected, observed)
	}
	return expected, observed
}

// diffStatus compares the status and the identity of objects.
func (c *ExpectConfig) diffStatus(expected, observed client.Object) string {
	if expected.GetObjectKind().GroupVersionKind().Empty() {
		// An unstructured object of a call has a kind. Typed objects need none: their Go type implies it.
		expected.GetObjectKind().SetGroupVersionKind(observed.GetObjectKind().GroupVersionKind())
	}
	if diff := c.differ().ResourceStatusUpdate(expected, observed); diff != "" {
		return diff
	}
	return cmp.Diff(c.identity(expected), c.identity(observed))
}

// identity identifies an object.
type identity struct {
	Group, Kind, Namespace, Name string
}

func (c *ExpectConfig) identity(obj client.Object) identity {
	kind := c.kindOf(obj)
	return identity{Group: kind.Group, Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// diffSubResource compares writes to subresources other than the status.
func (c *ExpectConfig) diffSubResource(expected, observed SubResourceRef) string {
	expected.Body = unwrapped(expected.Body)
	if expected.Body != nil && observed.Body != nil {
		expected.Body, observed.Body = c.normalize(expected.Body, observed.Body)
	}
	return cmp.Diff(expected, observed, sameWrite, NormalizeApplyConfiguration)
}
