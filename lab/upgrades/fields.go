// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
)

// fields are bugs with fields that the old version does not set.
var fields = []Entry{
	{
		Name:   "create-only",
		About:  "The new version sets a field of the Deployment only when it creates it, so that existing ones lack it.",
		Oracle: converge.OracleEndState, noRollback: "the old version does not remove the service account",
		old: version{sync: func(s *session) error { return s.deployment(oldLabels, unchanged) }},
		buggy: version{sync: func(s *session) error {
			return s.deployment(oldLabels, func(d *appsv1.Deployment) error {
				if d.CreationTimestamp.IsZero() {
					d.Spec.Template.Spec.ServiceAccountName = s.Name
				}
				return nil
			})
		}},
		correct: version{sync: func(s *session) error {
			return s.deployment(oldLabels, func(d *appsv1.Deployment) error {
				d.Spec.Template.Spec.ServiceAccountName = s.Name
				return nil
			})
		}},
	},
	{
		Name:   "immutable-default",
		About:  "The new version makes Services headless by default, also existing ones, which the API server rejects.",
		Oracle: converge.OracleQuiescence,
		masks: []converge.Mask{
			{Object: &corev1.Service{}, Field: "spec.clusterIP"}, {Object: &corev1.Service{}, Field: "spec.clusterIPs"},
		},
		old: version{sync: func(s *session) error { return s.service(func(*corev1.Service) {}) }},
		buggy: version{sync: func(s *session) error {
			return s.service(func(service *corev1.Service) { service.Spec.ClusterIP = corev1.ClusterIPNone })
		}},
		correct: version{sync: func(s *session) error {
			return s.service(func(service *corev1.Service) {
				if service.CreationTimestamp.IsZero() {
					service.Spec.ClusterIP = corev1.ClusterIPNone
				}
			})
		}},
	},
	{
		Name:   "status-moved",
		About:  "The new version reports the address in another field of the status, and leaves the old field as it was.",
		Oracle: converge.OracleEndState, noRollback: "the old version does not know the new field",
		old: version{sync: func(s *session) error {
			s.Status.Endpoint = "http://a"
			return nil
		}},
		buggy: version{sync: func(s *session) error {
			s.Status.Address = &Address{Host: "a"}
			return nil
		}},
		correct: version{sync: func(s *session) error {
			s.Status.Address, s.Status.Endpoint = &Address{Host: "a"}, ""
			return nil
		}},
	},
	{
		Name:   "nil-field",
		About:  "The new version sets the address of new apps only, and panics where it does not exist.",
		Oracle: converge.OracleErrors, noRollback: "the old version does not know the address",
		old: version{sync: func(s *session) error {
			s.Status.Initialized = true
			return s.config("")
		}},
		buggy: version{sync: func(s *session) error {
			if !s.Status.Initialized {
				s.Status.Address, s.Status.Initialized = &Address{}, true
			}
			s.Status.Address.Host = s.Name
			return s.config("")
		}},
		correct: version{sync: func(s *session) error {
			if s.Status.Address == nil {
				s.Status.Address, s.Status.Initialized = &Address{}, true
			}
			s.Status.Address.Host = s.Name
			return s.config("")
		}},
	},
	{
		Name:   "skips-observed",
		About:  "The new version skips objects whose generation was observed, so that existing ones lack its new child.",
		Oracle: converge.OracleEndState, noRollback: "the old version does not know the metrics",
		without: "skipping objects leaves deleted children missing in each version that does so",
		old: version{sync: func(s *session) error {
			s.Status.ObservedGeneration = s.Generation
			return s.config("")
		}},
		buggy: version{sync: func(s *session) error {
			if s.Status.ObservedGeneration == s.Generation {
				return nil
			}
			if err := s.config("-metrics"); err != nil {
				return err
			}
			if err := s.config(""); err != nil {
				return err
			}
			s.Status.ObservedGeneration = s.Generation
			return nil
		}},
		correct: version{sync: func(s *session) error {
			if err := s.config("-metrics"); err != nil {
				return err
			}
			s.Status.ObservedGeneration = s.Generation
			return s.config("")
		}},
	},
	{
		Name:   "template-hash",
		About:  "The new version computes the hash of the pod template in another way, and replaces all pods.",
		Oracle: converge.OracleDuplicates,
		old:    version{sync: func(s *session) error { return s.pods("fnv") }},
		buggy:  version{sync: func(s *session) error { return s.pods("sha") }},
		correct: version{sync: func(s *session) error {
			return s.pods("sha", "fnv")
		}},
		fixedOld: &version{sync: func(s *session) error { return s.pods("fnv", "sha") }},
	},
}

// service keeps a Service with the name of the app.
func (s *session) service(mutate func(*corev1.Service)) error {
	service := &corev1.Service{ObjectMeta: s.child("")}
	return s.ensure(service, func() error {
		service.Spec.Selector = oldLabels
		service.Spec.Ports = []corev1.ServicePort{{
			Name: "http", Port: 80, TargetPort: intstr.FromInt32(80), Protocol: corev1.ProtocolTCP,
		}}
		mutate(service)
		return nil
	})
}

const hashAnnotation = "upgrades.trueup.dev/hash"

// pods keeps a pod with the hash of its template, as the first way computes it. It replaces pods with another hash, and
// only marks those with the hash of another way.
func (s *session) pods(ways ...string) error {
	pod := &corev1.Pod{ObjectMeta: s.child("-0")}
	err := s.Get(s.ctx, client.ObjectKeyFromObject(pod), pod)
	switch {
	case client.IgnoreNotFound(err) != nil || pod.DeletionTimestamp != nil:
		return err
	case err != nil:
		pod.Annotations = map[string]string{hashAnnotation: ways[0] + s.Spec.Image}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: s.Spec.Image}}
		return s.create(pod)
	}
	for i, way := range ways {
		if pod.Annotations[hashAnnotation] != way+s.Spec.Image {
			continue
		}
		if i == 0 {
			return nil
		}
		pod.Annotations[hashAnnotation] = ways[0] + s.Spec.Image
		return s.Update(s.ctx, pod)
	}
	return s.remove(pod)
}
