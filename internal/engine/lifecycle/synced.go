// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Informer is a cache for one kind.
type Informer interface {
	cache.Informers
	Object() client.Object
}

// ErrNotSynced is the error of an informer that has not synced.
var ErrNotSynced = errors.New("not all objects are known yet")

// RunsWhileServed reports whether an informer runs only while the API server serves its kind. Nothing waits for it.
func RunsWhileServed(informer Informer) bool {
	_, ok := informer.(interface{ RunsWhileServed() })
	return ok
}

// CheckSynced returns an error if an informer that must have synced has not: [ErrNotSynced], or the reason why it
// cannot sync.
func CheckSynced(ctx context.Context, informer Informer) error {
	if RunsWhileServed(informer) {
		return nil
	}
	events, err := EventsOf(ctx, informer)
	if err == nil && !events.HasSynced() {
		err = ErrNotSynced
	}
	return err
}

// IsSynced reports whether an informer has synced. It takes at most one second.
func IsSynced(informer Informer) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return CheckSynced(ctx, informer) == nil
}

// EventsOf returns the source of the events of an informer, without waiting until the informer has synced.
func EventsOf(ctx context.Context, informer Informer) (cache.Informer, error) {
	return informer.GetInformer(ctx, informer.Object(), cache.BlockUntilSynced(false))
}
