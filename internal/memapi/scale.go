// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const scaleSubresource = "scale"

// scaleKind is the kind of scale subresources.
var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// noReplicas is the value of a replica count that is absent.
const noReplicas = math.MinInt32

func fieldPath(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

// scaleOf returns the scale of an object.
func (t *table) scaleOf(obj client.Object) (*autoscalingv1.Scale, error) {
	paths, content := t.kind.Scale, t.contentOf(obj)
	wanted, found, err := unstructured.NestedInt64(content, fieldPath(paths.SpecReplicas)...)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if !found && t.kind.Custom {
		wanted = noReplicas
	}
	current, _, err := unstructured.NestedInt64(content, fieldPath(paths.StatusReplicas)...)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
			CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(wanted)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(current)},
	}
	if paths.Selector == "" {
		return scale, nil
	}
	switch selector, _, _ := unstructured.NestedFieldNoCopy(
		content, fieldPath(paths.Selector)...,
	); selector := selector.(type) {
	case string:
		scale.Status.Selector = selector
	case map[string]any:
		if scale.Status.Selector, err = selectorText(selector); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	return scale, nil
}

// selectorText returns a selector in the format of a query. Replication controllers have labels as selector.
func selectorText(content map[string]any) (string, error) {
	var selector metav1.LabelSelector
	_, isSelector := content["matchLabels"]
	if _, ok := content["matchExpressions"]; !ok && !isSelector {
		content = map[string]any{"matchLabels": content}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", err
	}
	return parsed.String(), nil
}

// rescale writes the scale that change returns for the current scale of an object.
func (s *Server) rescale(
	t *table, key client.ObjectKey, uid types.UID, req request,
	change func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error),
) (*autoscalingv1.Scale, error) {
	updated, err := s.update(t, key, uid, req, func(r *record) (client.Object, error) {
		before, err := t.scaleOf(r.object)
		if err != nil {
			return nil, err
		}
		after, err := change(before)
		if err != nil {
			return nil, err
		}
		if after.Spec.Replicas == noReplicas {
			return nil, apierrors.NewBadRequest(
				fmt.Sprintf("the spec replicas field %q cannot be empty", t.kind.Scale.SpecReplicas),
			)
		}
		if errs := validation.ValidateNonnegativeField(
			int64(after.Spec.Replicas), field.NewPath("spec", "replicas"),
		); len(errs) > 0 && !t.kind.Custom {
			return nil, apierrors.NewInvalid(scaleKind.GroupKind(), key.Name, errs)
		}
		content := runtime.DeepCopyJSON(r.contents(t))
		if err := unstructured.SetNestedField(
			content, int64(after.Spec.Replicas), fieldPath(t.kind.Scale.SpecReplicas)...,
		); err != nil {
			return nil, err
		}
		obj, err := t.parse(content)
		if err != nil {
			return nil, err
		}
		t.kind.Normalize(obj)
		if after.ResourceVersion != "" {
			obj.SetResourceVersion(after.ResourceVersion)
		}
		return s.manage(t, r, obj, req)
	})
	if err != nil {
		return nil, err
	}
	return t.scaleOf(updated.object)
}

// scaleFrom returns the scale that a client sends.
func scaleFrom(body client.Object) (*autoscalingv1.Scale, error) {
	switch body := body.(type) {
	case *autoscalingv1.Scale:
		return body.DeepCopy(), nil
	case *unstructured.Unstructured:
		scale := &autoscalingv1.Scale{}
		return scale, runtime.DefaultUnstructuredConverter.FromUnstructured(body.DeepCopy().Object, scale)
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got %T", body))
	}
}

func respondScale(scale *autoscalingv1.Scale, body client.Object) error {
	switch body := body.(type) {
	case *autoscalingv1.Scale:
		*body = *scale
		return nil
	case *unstructured.Unstructured:
		body.Object = contentOf(scale, scaleKind, false)
		return nil
	default:
		return fmt.Errorf("a Scale cannot be read into %T", body)
	}
}

func (c *subresourceClient) getScale(ctx context.Context, obj, body client.Object) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), true)
	if err != nil {
		return err
	}
	r := t.objects[key]
	if r == nil {
		return t.notFound(key.Name)
	}
	if r, err = c.server.read(t, r); err != nil {
		return err
	}
	scale, err := t.scaleOf(r.object)
	if err != nil {
		return err
	}
	if scale.Spec.Replicas == noReplicas {
		return apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", t.kind.Scale.SpecReplicas))
	}
	return respondScale(scale, body)
}

func (c *subresourceClient) updateScale(ctx context.Context, obj, body client.Object, req request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), true)
	if err != nil {
		return err
	}
	sent, err := scaleFrom(body)
	if err != nil {
		return err
	}
	if err := matchName(key, sent); err != nil {
		return err
	}
	scale, err := c.server.rescale(t, key, sent.UID, req, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		return sent, nil
	})
	if err != nil {
		return err
	}
	return respondScale(scale, body)
}

func (c *subresourceClient) patchScale(
	ctx context.Context, obj, body client.Object, patch client.Patch, req request,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), false)
	if err != nil {
		return err
	}
	if err := t.checkPatchType(patch.Type()); err != nil {
		return err
	}
	if patch.Type() != types.MergePatchType {
		return errors.New("only merge patches of a scale are served")
	}
	data, err := patch.Data(body)
	if err != nil {
		return err
	}
	scale, err := c.server.rescale(t, key, "", req, func(before *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		change, err := decodeContent(data)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		content := merge(contentOf(before, scaleKind, false), change)
		if err := matchKind(scaleKind, false, key, content); err != nil {
			return nil, err
		}
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		after := &autoscalingv1.Scale{}
		return after, json.Unmarshal(text, after)
	})
	if err != nil {
		return err
	}
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok { // metadata is read into the object, not into the body
		partial.ObjectMeta = scale.ObjectMeta
		return nil
	}
	return respondScale(scale, body)
}
