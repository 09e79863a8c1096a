// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Close removes every object of the case, in the reverse order of their creation, and returns when they no longer
// exist.
func (a *API) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var errs []error
	for _, rec := range slices.Backward(a.ordered) {
		if err := a.remove(ctx, rec); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", rec.id, err))
		}
	}
	return errors.Join(errs...)
}

// remove removes an object of the case, if it exists.
func (a *API) remove(ctx context.Context, rec *record) error {
	if rec.borrowed {
		return nil
	}
	if isNamespace(rec.id) {
		return a.leaveNamespace(ctx, rec.id.name)
	}
	obj := a.blank(rec)
	obj.SetUID(rec.uid)
	if err := removeFrom(ctx, a.client, obj); err != nil {
		return err
	}
	if rec.kind == serviceAccountKind && a.host.namespaces[rec.id.namespace] {
		return a.equipNamespace(ctx, rec.id.namespace)
	}
	return nil
}

// removeFrom deletes an object and its finalizers, and returns when it no longer exists. Another object with the same
// name is kept.
func removeFrom(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
	uid := obj.GetUID()
	err := c.Delete(
		ctx, obj, client.GracePeriodSeconds(0), client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground),
	)
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil
	} else if err != nil {
		return err
	}
	return await(ctx, func() (bool, error) {
		left := newUnstructured(obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
		if err := c.Get(ctx, client.ObjectKeyFromObject(left), left); apierrs.IsNotFound(err) {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if left.GetUID() != uid {
			return true, nil
		}
		if len(left.GetFinalizers()) > 0 {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			return false, client.IgnoreNotFound(c.Patch(ctx, left, patch))
		}
		return false, nil
	})
}

// pollInterval is the time between two checks.
const pollInterval = 5 * time.Millisecond

// await calls check until it returns true or an error, or the context ends.
func await(ctx context.Context, check func() (done bool, err error)) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if done, err := check(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("not done after %s: %w", timeout, ctx.Err())
		}
	}
}
