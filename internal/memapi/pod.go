// SPDX-License-Identifier: Apache-2.0

package memapi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
