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
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subresourceClient is the client for a subresource.
type subresourceClient struct {
	*serverClient
	subresource string
}

func (c *serverClient) Status() client.SubResourceWriter {
	return c.SubResource(statusSubresource)
}

func (c *serverClient) SubResource(subresource string) client.SubResourceClient {
	return &subresourceClient{serverClient: c, subresource: subresource}
}

var errOnlyMetadata = errors.New("cannot update status using only metadata -- did you mean to patch?")

// served returns an error if a kind does not have the subresource. Otherwise it returns the error to use if the
// subresource does not support the verb.
func (c *subresourceClient) served(verb string, obj client.Object) (notAllowed, err error) {
	t, _, err := c.target(obj, client.ObjectKeyFromObject(obj), verb != "patch")
	if err != nil {
		return nil, err
	}
	served := c.subresource == statusSubresource && t.kind.Status || c.subresource == scaleSubresource &&
		t.kind.Scale != nil ||
		(c.subresource == evictionSubresource || c.subresource == bindingSubresource) &&
			t.kind.GroupVersionKind == podKind && t.goType != nil ||
		c.subresource == finalizeSubresource && isNamespace(t) ||
		c.subresource == approvalSubresource && t.kind.GroupVersionKind == signingRequestKind
	if !served {
		return nil, t.notServed(obj.GetName())
	}
	return t.notAllowed(verb), nil
}

func (c *subresourceClient) Get(
	ctx context.Context, obj, subresource client.Object, _ ...client.SubResourceGetOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errors.New("can not get subresource using only metadata")
	}
	if err := sameForm(obj, subresource); err != nil {
		return err
	}
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName())
	}
	notAllowed, err := c.served("get", obj)
	if err != nil {
		return err
	}
	switch c.subresource {
	case statusSubresource, approvalSubresource:
		return c.serverClient.Get(ctx, client.ObjectKeyFromObject(obj), subresource)
	case scaleSubresource:
		return c.getScale(ctx, obj, subresource)
	default:
		return notAllowed
	}
}

func (c *subresourceClient) Create(
	ctx context.Context, obj, subresource client.Object, opts ...client.SubResourceCreateOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errOnlyMetadata
	}
	if err := sameForm(obj, subresource); err != nil {
		return err
	}
	if subresource.GetName() == "" {
		subresource.SetName(obj.GetName())
	}
	notAllowed, err := c.served("post", obj)
	if err != nil {
		return err
	}
	var options client.SubResourceCreateOptions
	options.ApplyOptions(opts)
	switch c.subresource {
	case evictionSubresource:
		return c.evict(ctx, obj, subresource, options.DryRun)
	case bindingSubresource:
		return c.bind(ctx, obj, subresource, options.DryRun)
	default:
		return notAllowed
	}
}

// sameForm refuses a typed subresource for an unstructured object.
func sameForm(obj, subresource client.Object) error {
	if _, ok := obj.(runtime.Unstructured); ok {
		if _, ok := subresource.(runtime.Unstructured); !ok {
			return fmt.Errorf("unstructured client did not understand object: %T", subresource)
		}
	}
	return nil
}

func (c *subresourceClient) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	if _, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return errOnlyMetadata
	}
	var options client.SubResourceUpdateOptions
	options.ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	if body.GetName() == "" {
		body.SetName(obj.GetName())
	}
	if body.GetNamespace() == "" {
		body.SetNamespace(obj.GetNamespace())
	}
	notAllowed, err := c.served("put", obj)
	if err != nil {
		return err
	}
	req := c.request(options.FieldManager, options.DryRun, c.subresource)
	switch c.subresource {
	case statusSubresource:
		return c.put(ctx, obj, body, req)
	case approvalSubresource: // it may only change conditions, but nothing relies on that
		req.subresource = statusSubresource
		return c.put(ctx, obj, body, req)
	case finalizeSubresource:
		return c.finalize(ctx, body, req)
	case scaleSubresource:
		return c.updateScale(ctx, obj, body, req)
	default:
		return notAllowed
	}
}

func (c *subresourceClient) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	notAllowed, err := c.served("patch", obj)
	if err != nil {
		return err
	}
	var options client.SubResourcePatchOptions
	options.ApplyOptions(opts)
	body := obj
	if options.SubResourceBody != nil {
		body = options.SubResourceBody
	}
	switch c.subresource {
	case statusSubresource, approvalSubresource:
		return c.patch(ctx, obj, body, patch, *options.AsPatchOptions(), statusSubresource)
	case scaleSubresource:
		return c.patchScale(ctx, obj, body, patch, c.request(options.FieldManager, options.DryRun, c.subresource))
	default:
		return notAllowed
	}
}

const (
	approvalSubresource = "approval"
	bindingSubresource  = "binding"
	finalizeSubresource = "finalize"
)

var signingRequestKind = certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")

// finalize replaces the finalizers in the specification of a namespace. A namespace that is being deleted is removed
// with its last finalizer.
func (c *subresourceClient) finalize(ctx context.Context, body client.Object, req request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := c.server
	t, key, err := c.target(body, client.ObjectKeyFromObject(body), true)
	if err != nil {
		return err
	}
	sent, err := t.decode(body)
	if err != nil {
		return err
	}
	r := t.objects[key]
	if r == nil {
		return t.notFound(key.Name)
	}
	if version, err := parseVersion(sent); err != nil || version != 0 && version != uint64(r.version) {
		return t.stale(key.Name)
	}
	obj := r.object.DeepCopyObject().(client.Object)
	clearNamespaceFinalizers(obj)
	if namespace, ok := obj.(*corev1.Namespace); ok {
		namespace.Spec.Finalizers = namespaceFinalizers(sent)
	}
	switch {
	case req.dryRun:
		r = &record{table: t, object: obj}
	case emptied(t, obj, r.object):
		s.remove(t, r, c.name)
		r = &record{table: t, object: obj}
	default:
		r = s.put(t, key, obj, r.request(c.name))
	}
	return t.respond(r, body)
}

// bind assigns a pod to a node. The response is a Status.
func (c *subresourceClient) bind(ctx context.Context, obj, body client.Object, dryRun []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := c.server
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), true)
	if err != nil {
		return err
	}
	var binding corev1.Binding
	encoded, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(encoded, &binding)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	r := t.objects[key]
	if r == nil {
		return t.notFound(key.Name)
	}
	pod := r.object.DeepCopyObject().(*corev1.Pod)
	if node := pod.Spec.NodeName; node != "" {
		return apierrors.NewConflict(t.resource, key.Name, fmt.Errorf(
			"pod %s is already assigned to node %q", key.Name, node,
		))
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: seconds(s.now()),
	})
	if len(dryRun) == 0 {
		s.put(t, key, pod, r.request(c.name))
	}
	if u, ok := body.(*unstructured.Unstructured); ok {
		u.Object = map[string]any{
			"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": metav1.StatusSuccess,
			"code": int64(201),
		}
	}
	return nil
}

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
