// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"encoding/json"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
