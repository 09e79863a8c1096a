// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Informer is a cache for one kind.
type Informer interface {
	cache.Informers
	Object() client.Object
}

// IsFilled reports whether an informer has synced.
func IsFilled(informer Informer) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	events, err := informer.GetInformer(ctx, informer.Object(), cache.BlockUntilSynced(false))
	return err == nil && events.HasSynced()
}
