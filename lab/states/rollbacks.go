// SPDX-License-Identifier: Apache-2.0

package states

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge"
)

// rollbacks are bugs with values that are bad, defaulted or immutable, and with the way back from them.
var rollbacks = []Entry{
	{
		Name: "order-ignored", Category: "undesired", Oracle: converge.OraclePath,
		About: "Arguments are compared as sets, so that another order is not written.",
		spec:  AppSpec{Args: []string{"--fast", "--verbose"}}, fields: []string{"args"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					present, wanted := slices.Sorted(slices.Values(c.Args)), slices.Sorted(slices.Values(s.Spec.Args))
					if !buggy || !slices.Equal(present, wanted) {
						c.Args = slices.Clone(s.Spec.Args)
					}
					return nil
				})
			}
		},
	},
	{
		Name: "default-recorded", Category: "undesired", Oracle: converge.OraclePath,
		About: "The default of one field depends on another one, and is recorded at first.",
		spec:  AppSpec{}, fields: []string{"metrics", "version"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				version := s.Spec.Version
				if version == "" && (!buggy || s.Status.Message == "") {
					s.Status.Message = "1.0.0"
					if s.Spec.Metrics {
						s.Status.Message = "1.1.0"
					}
				}
				if version == "" {
					version = s.Status.Message
				} else if !buggy {
					s.Status.Message = ""
				}
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["version"] = version
					return nil
				})
			}
		},
	},
	{
		Name: "attempt-recorded", Category: "error", Oracle: converge.OraclePath,
		About: "A spec is recorded as applied before it is checked, so that the next reconcile reports success.",
		spec:  AppSpec{Timeout: "10s"}, fields: []string{"timeout"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if s.Status.Message == s.Spec.Timeout && s.Status.Message != "" {
					return nil
				}
				if buggy {
					s.Status.Message = s.Spec.Timeout
				}
				d, err := time.ParseDuration(s.Spec.Timeout)
				if err != nil {
					return errors.New("the timeout is not a duration")
				}
				if err := s.config(func(config *corev1.ConfigMap) error {
					config.Data["timeout"] = d.String()
					return nil
				}); err != nil {
					return err
				}
				return nil
			}
		},
	},
	{
		Name: "claim-template-immutable", Category: "outage", Oracle: converge.OraclePath,
		About: "The claim templates of a stateful set cannot change: updates of the size fail indefinitely.",
		spec:  AppSpec{Storage: "1Gi"}, fields: []string{"storage"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				size, err := resource.ParseQuantity(s.Spec.Storage)
				if err != nil || size.Sign() <= 0 {
					return errSize
				}
				set := &appsv1.StatefulSet{ObjectMeta: s.child("")}
				err = s.Get(s.ctx, client.ObjectKeyFromObject(set), set)
				if err == nil && !buggy && claimOf(set).Storage().Cmp(size) != 0 {
					if err := s.remove(set); err != nil {
						return err
					}
				} else if client.IgnoreNotFound(err) != nil {
					return err
				}
				set = &appsv1.StatefulSet{ObjectMeta: s.child("")}
				return s.ensure(set, func() error {
					set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: s.Name}}
					set.Spec.Template.Labels = map[string]string{appLabel: s.Name}
					if len(set.Spec.Template.Spec.Containers) == 0 {
						set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/app:v1"}}
						set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
							ObjectMeta: metav1.ObjectMeta{Name: "data"},
							Spec: corev1.PersistentVolumeClaimSpec{
								AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
							},
						}}
					}
					*claimOf(set) = corev1.ResourceList{corev1.ResourceStorage: size}
					return nil
				})
			}
		},
	},
	{
		Name: "selector-set-once", Category: "undesired", Oracle: converge.OraclePath,
		About: "The labels of pods change, and the selector of the service remains that of the first labels.",
		spec:  AppSpec{Labels: map[string]string{"team": "a"}}, fields: []string{"labels"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				labels := map[string]string{appLabel: s.Name}
				maps.Copy(labels, s.Spec.Labels)
				if err := s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					d.Spec.Template.Labels = labels
					return nil
				}); err != nil {
					return err
				}
				service := &corev1.Service{ObjectMeta: s.child("")}
				return s.ensure(service, func() error {
					if len(service.Spec.Ports) == 0 || !buggy {
						service.Spec.Selector = labels
						service.Spec.Ports = []corev1.ServicePort{
							{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)},
						}
					}
					return nil
				})
			}
		},
	},
	{
		Name: "service-of-a-removed-port", Category: "undesired", Oracle: converge.OraclePath,
		About: "Each port has a service of its own, which stays when the port is removed.",
		spec:  AppSpec{Ports: []Port{{"http", 80}}}, fields: []string{"ports"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				wanted := map[string]bool{}
				for _, port := range s.Spec.Ports {
					name := fmt.Sprintf("%s-%s", s.Name, port.Name)
					wanted[name] = true
					if err := s.service(name, []corev1.ServicePort{{Name: port.Name, Port: port.Port}}); err != nil {
						return err
					}
				}
				services := &corev1.ServiceList{}
				if err := s.List(s.ctx, services, client.InNamespace(s.Namespace)); err != nil || buggy {
					return err
				}
				for _, service := range services.Items {
					if !wanted[service.Name] {
						if err := s.remove(&service); err != nil {
							return err
						}
					}
				}
				return nil
			}
		},
	},
	{
		Name: "bad-value-ignored", Category: "undesired", Oracle: converge.OraclePath,
		About: "An invalid quantity is ignored without a message: the last valid one remains.",
		spec:  AppSpec{Storage: "1Gi"}, fields: []string{"storage"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				size, err := resource.ParseQuantity(s.Spec.Storage)
				if err != nil && !buggy {
					return errSize
				}
				return s.config(func(config *corev1.ConfigMap) error {
					if err == nil {
						config.Data["size"] = size.String()
					}
					return nil
				})
			}
		},
	},
	{
		Name: "config-before-check", Category: "half",
		About: "The config map has the new timeout when it turns out that it is invalid, and the deployment has the old one.",
		spec:  AppSpec{Timeout: "10s"}, fields: []string{"timeout"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				d, err := time.ParseDuration(s.Spec.Timeout)
				if err != nil && !buggy {
					return errTimeout
				}
				if err := s.config(func(config *corev1.ConfigMap) error {
					config.Data["timeout"] = s.Spec.Timeout
					return nil
				}); err != nil {
					return err
				}
				if err != nil {
					return errTimeout
				}
				return s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					c.Args = []string{"--timeout=" + d.String()}
					return nil
				})
			}
		},
	},
	{
		Name: "removed-before-check", Category: "half",
		About: "The service is removed when it turns out that the size is invalid, and the deployment remains.",
		spec:  AppSpec{Storage: "1Gi"}, fields: []string{"storage"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				size, err := resource.ParseQuantity(s.Spec.Storage)
				if err != nil && buggy {
					if err := s.remove(&corev1.Service{ObjectMeta: s.child("")}); err != nil {
						return err
					}
				}
				if err != nil {
					return errSize
				}
				if err := s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					c.Args = []string{"--size=" + size.String()}
					return nil
				}); err != nil {
					return err
				}
				return s.service(s.Name, []corev1.ServicePort{{Name: "http", Port: 80}})
			}
		},
	},
}

var errTimeout = errors.New("the timeout is not a duration")

// claimOf returns the requests of the first claim template.
func claimOf(set *appsv1.StatefulSet) *corev1.ResourceList {
	return &set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests
}
