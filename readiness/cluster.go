// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// ofClaim follows kstatus: a claim is ready when it is bound.
func ofClaim(c *corev1.PersistentVolumeClaim) Readiness {
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return ready("the claim is bound to volume %s", c.Spec.VolumeName)
	case corev1.ClaimLost:
		return failed("Lost", "the volume of the claim no longer exists")
	}
	return progressing(ReasonPending, "the claim is not bound")
}

// ofVolume follows the documentation of the phases of a volume.
func ofVolume(v *corev1.PersistentVolume) Readiness {
	switch v.Status.Phase {
	case corev1.VolumeAvailable, corev1.VolumeBound:
		return ready("the volume is in phase %s", v.Status.Phase)
	case corev1.VolumeFailed:
		return failed(v.Status.Reason, orElse(v.Status.Message, "the volume was not reclaimed"))
	case corev1.VolumeReleased:
		return progressing("Released", "the claim of the volume was deleted, and the volume is not reclaimed")
	}
	return progressing(ReasonPending, "the volume is not available yet")
}

// ofService waits for the address of a load balancer. Other Services are ready when they exist, as for kstatus: this
// says nothing about their pods.
func ofService(s *corev1.Service) Readiness {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0 {
		return progressing(ReasonPending, "the load balancer has no address")
	}
	return ready("")
}

// ofNamespace reports a namespace that is being deleted by its phase.
func ofNamespace(n *corev1.Namespace) Readiness {
	if n.Status.Phase == corev1.NamespaceTerminating {
		return Readiness{State: Terminating, Reason: ReasonTerminating, Message: "is being deleted"}
	}
	return ready("")
}

// ofNode follows `kubectl get nodes`. A node that is cordoned can be ready.
func ofNode(n *corev1.Node) Readiness {
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			return ready("")
		default:
			return progressing(orElse(c.Reason, ReasonUnavailable), "%s", orElse(c.Message, "the node is not ready"))
		}
	}
	return progressing(ReasonPending, "the node has not reported its state")
}

// ofBudget follows kstatus.
func ofBudget(b *policyv1.PodDisruptionBudget) Readiness {
	if r, ok := observed(b.Generation, b.Status.ObservedGeneration); !ok {
		return r
	}
	if b.Status.CurrentHealthy < b.Status.DesiredHealthy {
		return progressing(ReasonUnavailable, "%d of %d pods are healthy", b.Status.CurrentHealthy, b.Status.DesiredHealthy)
	}
	return ready("%d of %d pods are healthy", b.Status.CurrentHealthy, b.Status.DesiredHealthy)
}

// ofAutoscaler follows the documentation of the conditions of a HorizontalPodAutoscaler: it works if it is able to
// scale, and if it computes a number of replicas. It may be limited, or disabled by a target of 0 replicas.
func ofAutoscaler(a *autoscalingv2.HorizontalPodAutoscaler) Readiness {
	if number := a.Status.ObservedGeneration; number != nil {
		if r, ok := observed(a.Generation, *number); !ok {
			return r
		}
	}
	active := false
	for _, c := range a.Status.Conditions {
		switch {
		case c.Type == autoscalingv2.AbleToScale && c.Status == corev1.ConditionFalse,
			c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason != "ScalingDisabled":
			return progressing(orElse(c.Reason, ReasonUnavailable), "%s", orElse(c.Message, "scaling is not active"))
		case c.Type == autoscalingv2.ScalingActive:
			active = true
		}
	}
	if !active {
		return progressing(ReasonPending, "the number of replicas was not computed yet")
	}
	return ready("")
}

// ofSigningRequest waits for the certificate.
func ofSigningRequest(r *certificatesv1.CertificateSigningRequest) Readiness {
	approved := false
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			return failed(orElse(c.Reason, string(c.Type)), orElse(c.Message, "no certificate is issued"))
		case certificatesv1.CertificateApproved:
			approved = true
		}
	}
	switch {
	case len(r.Status.Certificate) > 0:
		return ready("")
	case approved:
		return progressing("Approved", "the certificate is not issued yet")
	}
	return progressing(ReasonPending, "the request is not approved")
}
