// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SchemeAccessor provides a scheme. Clients, clusters and managers implement it.
type SchemeAccessor interface {
	Scheme() *runtime.Scheme
}

// NewDuckAwareAPIReaderWrapper returns a reader that can also read duck typed objects and lists. The scheme decides
// which objects are duck typed, see [IsDuck]. Other objects are passed to the wrapped reader unchanged.
func NewDuckAwareAPIReaderWrapper(reader client.Reader, scheme SchemeAccessor) client.Reader {
	return &duckReader{reader: reader, scheme: scheme}
}

type duckReader struct {
	reader client.Reader
	scheme SchemeAccessor
}

var _ client.Reader = (*duckReader)(nil)

func (r *duckReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !IsDuck(obj, r.scheme.Scheme()) {
		return r.reader.Get(ctx, key, obj, opts...)
	}
	return asUnstructured(obj, func(u *unstructured.Unstructured) error {
		return r.reader.Get(ctx, key, u, opts...)
	})
}

func (r *duckReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !IsDuck(list, r.scheme.Scheme()) {
		return r.reader.List(ctx, list, opts...)
	}
	return asUnstructuredList(list, func(u *unstructured.UnstructuredList) error {
		return r.reader.List(ctx, u, opts...)
	})
}
