// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrs "k8s.io/apimachinery/pkg/api/errors"

	"trueup.dev/internal/objects/nilcheck"
)

// DefaultUpdateRetries is the number of times that [UpdateObject] retries after a conflict, unless [UpdateOptions] set
// another number.
const DefaultUpdateRetries = 2

// UpdateOptions change defaults of [UpdateObject].
type UpdateOptions struct {
	// Retries is the number of retries after a conflict. Default: [DefaultUpdateRetries].
	Retries *int
	// Subresource is the subresource that is written. Default: the main resource.
	Subresource SubresourceName
}

// UpdateObject reads an object from the API server, calls update to change it, and writes it. If another client changed
// the object in between, UpdateObject retries immediately and calls update with isRetry. Each call receives a fresh
// copy, which update may change and return. An error of update is returned without a retry. If update changes nothing,
// nothing is written. The result is the stored object. After the last retry, the conflict is returned.
func UpdateObject[T Object](
	ctx context.Context, store *TypedStore[T], id Identifier, update func(obj T, isRetry bool) (T, error),
	options UpdateOptions,
) (T, error) {
	var none T
	switch {
	case store == nil:
		return none, fmt.Errorf("update %q: UpdateObject must have a store", id)
	case update == nil:
		return none, store.failed("update", id, errors.New("UpdateObject must have an update function"))
	}
	retries := DefaultUpdateRetries
	if options.Retries != nil {
		retries = *options.Retries
	}
	for attempt := 0; ; attempt++ {
		current, err := store.Get(ctx, id, Live)
		if err != nil {
			return none, err
		}
		changed, err := update(copyOf(current), attempt > 0)
		if err != nil {
			return none, err
		}
		if nilcheck.IsNilPointer(changed) {
			return none, store.failed("update", id, errors.New("the update function must return an object"))
		}
		if changed.GetResourceVersion() == "" {
			return none, store.failed("update", id, ErrMissingResourceVersion)
		}
		if changed.GetResourceVersion() != current.GetResourceVersion() {
			return none, store.failed(
				"update", id, errors.New("the update function returned an object with a different resource version"),
			)
		}
		// The comparison of apimachinery panics on unexported fields. A redundant write does no harm.
		if reflect.DeepEqual(current, changed) {
			return current, nil
		}
		if options.Subresource == "" {
			changed, err = store.Update(ctx, id, changed)
		} else {
			changed, err = store.UpdateSubresource(ctx, id, options.Subresource, changed)
		}
		if !apierrs.IsConflict(err) || attempt >= retries {
			return changed, err
		}
	}
}
