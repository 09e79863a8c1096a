// SPDX-License-Identifier: Apache-2.0

package duck

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/call"
)

// SchemeAccessor provides a scheme. Clients, clusters and managers implement it.
type SchemeAccessor interface {
	Scheme() *runtime.Scheme
}

// NewDuckAwareAPIReaderWrapper returns a reader that can also read duck typed objects and lists. The scheme decides
// which objects are duck typed, see [IsDuck]. Other objects are passed to the wrapped reader unchanged.
func NewDuckAwareAPIReaderWrapper(reader client.Reader, scheme SchemeAccessor) client.Reader {
	duck := &converter{scheme: scheme, send: func(ctx context.Context, c call.Call) error { return c.Read(ctx, reader) }}
	return call.NewReader(duck.do)
}
