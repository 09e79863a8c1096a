// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"trueup.dev/testing/internal/fakeapi"
)

// Patch implements [client.Client].
func (c *caseClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	return c.patch(ctx, obj, patch, options.DryRun, func(live *unstructured.Unstructured, patch client.Patch) error {
		return c.real.Patch(ctx, live, patch, options)
	})
}

// patch calls a function that sends the translated patch, and sets the object to the result.
func (c *caseClient) patch(
	ctx context.Context, obj client.Object, patch client.Patch, dryRun []string, call func(
		live *unstructured.Unstructured, patch client.Patch,
	) error,
) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	live := newUnstructured(kind, obj.GetNamespace(), obj.GetName())
	rec, err := c.target(ctx, live, patch.Type() == types.ApplyPatchType)
	if err != nil {
		return err
	}
	hidden, err := c.hidePatch(rec, obj.GetNamespace(), patch.Type(), data)
	if err != nil {
		return err
	}
	send := func(version string) (*unstructured.Unstructured, error) {
		data, err := hidden.data(version)
		if err != nil {
			return nil, err
		}
		live := newUnstructured(kind, obj.GetNamespace(), obj.GetName())
		return live, call(live, client.RawPatch(patch.Type(), data))
	}
	if rec == nil {
		if live, err = send(""); err != nil {
			return err
		}
		sent := newUnstructured(kind, obj.GetNamespace(), obj.GetName())
		sent.Object = overlay(sent.Object, hidden.shown)
		if err := c.created(ctx, sent, live, hidden.foreign, dryRun); err != nil {
			return err
		}
	} else {
		live, err = c.change(ctx, rec, kind, hidden.version, func(version string, _ func(
			*unstructured.Unstructured,
		),
		) (*unstructured.Unstructured, error) {
			return send(version)
		})
		if err != nil {
			return err
		}
		c.patched(rec, hidden, live, dryRun)
	}
	return into(live.Object, obj)
}

// patched records a patched object, and sets live to what the case sees.
func (c *caseClient) patched(rec *record, patch *hiddenPatch, live *unstructured.Unstructured, dryRun []string) {
	if len(dryRun) == 0 {
		c.lock.Lock()
		if patch.owners {
			rec.owners, rec.foreign = patch.allOwners, patch.foreign
		}
		c.lock.Unlock()
	}
	c.written(rec, patch.shown, live, dryRun)
}

// Apply implements [client.Client].
func (c *caseClient) Apply(
	ctx context.Context, applied runtime.ApplyConfiguration, opts ...client.ApplyOption,
) error {
	return c.apply(ctx, applied, func(hidden *unstructured.Unstructured) error {
		return c.real.Apply(ctx, client.ApplyConfigurationFromUnstructured(hidden), opts...)
	}, (&client.ApplyOptions{}).ApplyOptions(opts).DryRun)
}

// apply calls a function that sends the translated apply configuration, and sets it to the result.
func (c *caseClient) apply(
	ctx context.Context, applied runtime.ApplyConfiguration, call func(live *unstructured.Unstructured) error,
	dryRun []string,
) error {
	data, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("the apply configuration: %w", err)
	}
	obj := newUnstructured(u.GroupVersionKind(), u.GetNamespace(), u.GetName())
	err = c.patch(ctx, obj, client.RawPatch(types.ApplyPatchType, data), dryRun, func(
		live *unstructured.Unstructured, patch client.Patch,
	) error {
		data, err := patch.Data(live)
		if err != nil {
			return err
		}
		if err := live.UnmarshalJSON(data); err != nil {
			return err
		}
		return call(live)
	})
	if err != nil {
		return err
	}
	return fakeapi.SetApplyConfiguration(applied, obj)
}
