// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultUpdateRetries is how often [UpdateObject] tries again after a conflict, unless [UpdateOptions] say otherwise.
const DefaultUpdateRetries = 2

// UpdateOptions change defaults of [UpdateObject].
type UpdateOptions struct {
	// Retries is how often to try again after a conflict. Default: [DefaultUpdateRetries].
	Retries *int
	// Subresource is the part of the object that is written. Default: the object without its subresources.
	Subresource SubresourceName
}

// UpdateObject reads an object from the API server, lets update change it, and writes it. When somebody else has written it in between, it starts again,
// after no wait, and update is called with isRetry. Each call has a fresh copy, which update may change and return; an error of update ends it. Nothing is
// written when update changes nothing. The result is the object as it is stored. After the last retry the error is a conflict.
func UpdateObject[T Object](
	ctx context.Context, store *TypedStore[T], id Identifier, update func(obj T, isRetry bool) (T, error), options UpdateOptions,
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
		if isNil(changed) {
			return none, store.failed("update", id, errors.New("the update function has returned no object"))
		}
		if changed.GetResourceVersion() != current.GetResourceVersion() {
			return none, store.failed("update", id, errors.New("the update function has returned another resource version than that of the object it was given"))
		}
		// Not the comparison of apimachinery, which panics at unexported fields; one write too many does no harm.
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
