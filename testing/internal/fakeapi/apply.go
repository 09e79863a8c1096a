// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"context"
	"encoding/json"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// applyCall is an apply in progress.
type applyCall struct {
	// applied is the configuration that the caller passed.
	applied     *unstructured.Unstructured
	subResource string
	// removed is set when the apply removed the object, because it was being deleted and lost its last finalizer.
	removed bool
}

// interceptApplies returns a client that passes each apply configuration to the store unchanged. The fake client
// converts it to a Go type first, which adds the zero values of fields that are not set.
//
// The pointer of the force option identifies a call: it is the only part of a call that the fake client passes on to
// the store unchanged.
func (s *store) interceptApplies(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Apply: func(
			ctx context.Context, c client.WithWatch, ac runtime.ApplyConfiguration, opts ...client.ApplyOption,
		) error {
			call, err := newApplyCall(ac, "")
			if err != nil {
				return err
			}
			options := client.ApplyOptions{Force: isForced(new(client.ApplyOptions).ApplyOptions(opts).Force)}
			s.applies.Store(options.Force, call)
			defer s.applies.Delete(options.Force)
			return s.keepingFinalizers(call, ac, func(ac runtime.ApplyConfiguration) error {
				return c.Apply(ctx, ac, append(slices.Clip(opts), &options)...)
			})
		},
		SubResourceApply: func(
			ctx context.Context, c client.Client, name string, ac runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption,
		) error {
			given := new(client.SubResourceApplyOptions).ApplyOpts(opts)
			applied := ac
			if given.SubResourceBody != nil && name == "status" {
				applied = given.SubResourceBody
			}
			call, err := newApplyCall(applied, name)
			if err != nil {
				return err
			}
			options := client.SubResourceApplyOptions{ApplyOptions: client.ApplyOptions{Force: isForced(given.Force)}}
			s.applies.Store(options.Force, call)
			defer s.applies.Delete(options.Force)
			return c.SubResource(name).Apply(ctx, ac, append(slices.Clip(opts), &options)...)
		},
	})
}

func newApplyCall(ac runtime.ApplyConfiguration, subResource string) (*applyCall, error) {
	data, err := json.Marshal(ac)
	if err != nil {
		return nil, err
	}
	call := &applyCall{applied: &unstructured.Unstructured{}, subResource: subResource}
	return call, utiljson.Unmarshal(data, &call.applied.Object)
}

// isForced returns a new pointer, which no other call has.
func isForced(force *bool) *bool {
	return new(force != nil && *force)
}

// keepingFinalizers executes an apply. If the configuration has no finalizers, the fake client deletes an object that
// is being deleted, so the finalizers of the stored object are added. The store decides which finalizers remain.
func (s *store) keepingFinalizers(
	call *applyCall, ac runtime.ApplyConfiguration, apply func(runtime.ApplyConfiguration) error,
) error {
	gvr, _ := meta.UnsafeGuessKindToResource(call.applied.GroupVersionKind())
	stored, err := s.Get(gvr, call.applied.GetNamespace(), call.applied.GetName())
	if err != nil {
		return apply(ac)
	}
	live, err := meta.Accessor(stored)
	if err != nil || live.GetDeletionTimestamp() == nil || len(call.applied.GetFinalizers()) > 0 {
		return apply(ac)
	}
	kept := call.applied.DeepCopy()
	kept.SetFinalizers(live.GetFinalizers())
	switch err := apply(client.ApplyConfigurationFromUnstructured(kept)); {
	case call.removed && apierrs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return SetApplyConfiguration(ac, kept)
}

// Apply creates the object if it does not exist, and changes it otherwise.
func (s *store) Apply(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, opts ...metav1.PatchOptions,
) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	var options metav1.PatchOptions
	if len(opts) > 0 {
		options = opts[0]
	}
	call, err := s.applyCallOf(options, obj)
	if err != nil {
		return err
	}
	live, err := s.Get(gvr, ns, accessor.GetName())
	switch {
	case apierrs.IsNotFound(err) && call.subResource == "":
		return s.applyNew(gvr, obj, ns, call, options)
	case err != nil:
		return err
	}

	gvk := call.applied.GroupVersionKind()
	before, err := untyped(live, gvk)
	if err != nil {
		return err
	}
	applied := s.appliedPart(call, obj, before)
	var after *unstructured.Unstructured
	if s.realism != nil {
		after, err = s.realism.apply(before, applied, call.subResource, options)
	} else {
		after, err = merge(before, applied, live)
	}
	if err != nil {
		return err
	}
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		call.removed = true
		return s.Delete(gvr, ns, accessor.GetName())
	}
	after.SetResourceVersion(accessor.GetResourceVersion())
	changed, err := s.typed(after)
	if err != nil {
		return err
	}
	return s.replace(gvr, changed, ns, nil)
}

// applyCallOf returns the call that the options belong to.
func (s *store) applyCallOf(options metav1.PatchOptions, obj runtime.Object) (*applyCall, error) {
	if found, ok := s.applies.Load(options.Force); ok {
		return found.(*applyCall), nil
	}
	// An interceptor has replaced the options.
	applied, err := untyped(obj, obj.GetObjectKind().GroupVersionKind())
	return &applyCall{applied: applied}, err
}

// appliedPart returns the part of the applied configuration that takes effect: the status for the status subresource,
// and otherwise all but a status that is a subresource.
func (s *store) appliedPart(
	call *applyCall, obj runtime.Object, before *unstructured.Unstructured,
) *unstructured.Unstructured {
	applied := call.applied.DeepCopy()
	if status, ok := applied.Object["status"]; call.subResource == "status" {
		applied.Object = map[string]any{
			"apiVersion": applied.GetAPIVersion(), "kind": applied.GetKind(), "metadata": map[string]any{
				"name": before.GetName(),
			}, "status": status,
		}
		if before.GetNamespace() != "" {
			applied.SetNamespace(before.GetNamespace())
		}
	} else if ok && s.keepsStatus(obj, before) {
		delete(applied.Object, "status")
	}
	return applied
}

// applyNew creates an object by applying it.
func (s *store) applyNew(
	gvr schema.GroupVersionResource, obj runtime.Object, ns string, call *applyCall, options metav1.PatchOptions,
) error {
	gvk := call.applied.GroupVersionKind()
	after, err := untyped(obj, gvk)
	if err != nil {
		return err
	}
	if after.Object["status"] == nil {
		// the fake client sets a status that is a subresource to null
		delete(after.Object, "status")
	}
	if s.realism != nil {
		applied := call.applied.DeepCopy()
		if after.Object["status"] == nil {
			delete(applied.Object, "status")
		}
		before := &unstructured.Unstructured{}
		before.SetGroupVersionKind(gvk)
		rv := after.GetResourceVersion()
		if after, err = s.realism.apply(before, applied, "", options); err != nil {
			return err
		}
		after.SetResourceVersion(rv)
	}
	created, err := s.typed(after)
	if err != nil {
		return err
	}
	return s.Create(gvr, created, ns)
}

// keepsStatus reports whether the fake client has replaced the applied status by the status of the live object, because
// it is a subresource.
func (s *store) keepsStatus(obj runtime.Object, live *unstructured.Unstructured) bool {
	u, err := untyped(obj, live.GroupVersionKind())
	return err == nil && equality.Semantic.DeepEqual(u.Object["status"], live.Object["status"])
}

// merge returns the live object with the applied fields. It ignores field owners: fields that were applied before and
// are no longer applied remain.
func merge(before, applied *unstructured.Unstructured, live runtime.Object) (*unstructured.Unstructured, error) {
	original, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(applied)
	if err != nil {
		return nil, err
	}
	var merged []byte
	if _, ok := live.(runtime.Unstructured); ok {
		merged, err = jsonpatch.MergePatch(original, patch)
	} else {
		merged, err = strategicpatch.StrategicMergePatch(original, patch, live)
	}
	if err != nil {
		return nil, err
	}
	after := &unstructured.Unstructured{}
	return after, utiljson.Unmarshal(merged, &after.Object)
}
