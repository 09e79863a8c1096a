// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const evictionSubresource = "eviction"

// evict deletes a pod if its disruption budget allows a disruption. The response is a Status, which leaves a typed
// eviction empty.
func (c *subresourceClient) evict(ctx context.Context, obj, body client.Object, dryRun []string) error {
	var eviction policyv1.Eviction
	switch body := body.(type) {
	case *policyv1.Eviction:
		body.DeepCopyInto(&eviction)
	case *unstructured.Unstructured:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, &eviction); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", body))
	}
	if err := c.evictPod(ctx, obj, &eviction, dryRun); err != nil {
		return err
	}
	gvk := body.GetObjectKind().GroupVersionKind()
	switch body := body.(type) {
	case *policyv1.Eviction:
		*body = policyv1.Eviction{}
	case *unstructured.Unstructured:
		body.Object = map[string]any{
			"metadata": map[string]any{}, "status": metav1.StatusSuccess, "code": int64(http.StatusCreated),
		}
	}
	body.GetObjectKind().SetGroupVersionKind(gvk)
	return nil
}

func (c *subresourceClient) evictPod(
	ctx context.Context, obj client.Object, eviction *policyv1.Eviction, dryRun []string,
) error {
	t, key, err := c.target(obj, client.ObjectKeyFromObject(obj), true)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if eviction.Name != key.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	opts := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		opts = eviction.DeleteOptions.DeepCopy()
	}
	if len(opts.DryRun) == 0 {
		opts.DryRun = dryRun
	}
	s := c.server
	if err := s.admitToNamespace(t, obj); err != nil {
		return err
	}
	r := t.objects[key]
	if r == nil {
		return t.notFound(key.Name)
	}
	req := request{client: c.name, dryRun: len(opts.DryRun) > 0, subresource: statusSubresource} // made by the server
	pod := r.object.(*corev1.Pod)
	if phase := pod.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed &&
		phase != corev1.PodPending && pod.DeletionTimestamp == nil {
		if err := s.disrupt(pod, req); err != nil {
			return err
		}
	}
	if !req.dryRun {
		if err := t.checkPreconditions(r, opts.Preconditions); err != nil {
			return err
		}
		updated, err := s.update(t, key, "", req, func(r *record) (client.Object, error) {
			pod := r.object.(*corev1.Pod).DeepCopy()
			setDisruptionTarget(&pod.Status, seconds(s.now()))
			return s.manage(t, r, pod, req)
		})
		if err != nil {
			return err
		}
		if p := opts.Preconditions; p != nil && p.ResourceVersion != nil {
			p.ResourceVersion = new(updated.object.GetResourceVersion())
		}
	}
	return s.delete(t, key, c.name, opts)
}

func setDisruptionTarget(status *corev1.PodStatus, now metav1.Time) {
	condition := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
		Message: "Eviction API: evicting", LastTransitionTime: now,
	}
	for i, other := range status.Conditions {
		if other.Type == condition.Type {
			if other.Status == condition.Status {
				condition.LastTransitionTime = other.LastTransitionTime
			}
			status.Conditions[i] = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}

// disrupt takes one disruption from the budget of a pod, if it has a budget.
func (s *Server) disrupt(pod *corev1.Pod, req request) error {
	t := s.tables[policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")]
	if t == nil || t.goType == nil {
		return nil
	}
	var budgets []*policyv1.PodDisruptionBudget
	for _, r := range t.sorted {
		budget := r.object.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			budgets = append(budgets, budget)
		}
	}
	switch len(budgets) {
	case 0:
		return nil
	case 1:
	default:
		err := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500}}
		err.ErrStatus.Message = "This pod has more than one PodDisruptionBudget, which the eviction subresource " +
			"does not support."
		return err
	}
	budget := budgets[0]
	if !ready(pod) && spares(budget) {
		return nil
	}
	if err := exhausted(budget); err != nil || req.dryRun {
		return err
	}
	_, err := s.update(t, client.ObjectKeyFromObject(budget), "", req, func(r *record) (client.Object, error) {
		budget := budget.DeepCopy()
		budget.Status.DisruptionsAllowed--
		if budget.Status.DisruptedPods == nil {
			budget.Status.DisruptedPods = map[string]metav1.Time{}
		}
		budget.Status.DisruptedPods[pod.Name] = seconds(s.now())
		return s.manage(t, r, budget, req)
	})
	return err
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// spares reports whether a budget allows the eviction of pods that are not ready.
func spares(budget *policyv1.PodDisruptionBudget) bool {
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	return policy != nil && *policy == policyv1.AlwaysAllow ||
		budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
}

// exhausted returns an error if a budget allows no disruption.
func exhausted(budget *policyv1.PodDisruptionBudget) error {
	const text = "Cannot evict pod as it would violate the pod's disruption budget."
	status := budget.Status
	var err *apierrors.StatusError
	var message string
	switch {
	case status.ObservedGeneration < budget.Generation:
		err, message = apierrors.NewTooManyRequests(text, 10), fmt.Sprintf(
			"The disruption budget %s is still being processed by the server.", budget.Name,
		)
	case status.DisruptionsAllowed > 0:
		return nil
	case status.CurrentHealthy <= status.DesiredHealthy:
		err = apierrors.NewTooManyRequests(text, 0)
		message = fmt.Sprintf(
			"The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, status.DesiredHealthy,
			status.CurrentHealthy,
		)
	default:
		err, message = apierrors.NewTooManyRequests(text, 0), fmt.Sprintf(
			"The disruption budget %s does not allow evicting pods currently", budget.Name,
		)
		if c := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition); c != nil &&
			c.Status == metav1.ConditionFalse && c.Message != "" {
			message += fmt.Sprintf(" (%s): %s", c.Reason, c.Message)
		}
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: message,
	})
	return err
}

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// gracePeriod returns the grace period of an object in seconds. It is zero if the object is not running.
func gracePeriod(obj client.Object, wanted *int64) int64 {
	var node string
	var phase corev1.PodPhase
	var period *int64
	if pod, ok := obj.(*corev1.Pod); ok {
		node, phase, period = pod.Spec.NodeName, pod.Status.Phase, pod.Spec.TerminationGracePeriodSeconds
	} else {
		content := obj.(*unstructured.Unstructured).Object
		node, _, _ = unstructured.NestedString(content, "spec", "nodeName")
		text, _, _ := unstructured.NestedString(content, "status", "phase")
		phase = corev1.PodPhase(text)
		if seconds, ok, _ := unstructured.NestedInt64(content, "spec", "terminationGracePeriodSeconds"); ok {
			period = &seconds
		}
	}
	if wanted != nil {
		period = wanted
	}
	switch {
	case node == "", phase == corev1.PodFailed, phase == corev1.PodSucceeded, period == nil:
		return 0
	case *period < 0:
		return 1
	default:
		return *period
	}
}
