// SPDX-License-Identifier: Apache-2.0

package states

import (
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"trueup.dev/converge"
)

// outages are bugs that stop the operator.
var outages = []Entry{
	{
		Name: "panic-without-tag", Category: "outage", Oracle: converge.OracleErrors,
		About: "The reconciler panics if an image has no tag.",
		spec:  AppSpec{Image: "example.com/app:v1"}, fields: []string{"image"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				parts := strings.Split(image(s), ":")
				if len(parts) < 2 && !buggy {
					return errors.New("the image has no tag")
				}
				tag := parts[1]
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["image"], config.Data["tag"] = parts[0], tag
					return nil
				})
			}
		},
	},
	{
		Name: "panic-without-tls", Category: "outage", Oracle: converge.OracleErrors,
		About: "The reconciler panics if an optional object is removed.",
		spec:  AppSpec{TLS: &TLS{"certificate"}}, fields: []string{"tls"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					if delete(config.Data, "secret"); buggy || s.Spec.TLS != nil {
						config.Data["secret"] = s.Spec.TLS.SecretName
					}
					return nil
				})
			}
		},
	},
	{
		Name: "panic-without-ports", Category: "outage", Oracle: converge.OracleErrors,
		About: "The reconciler panics if a list is empty.",
		spec:  AppSpec{Ports: []Port{{"http", 80}}}, fields: []string{"ports"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if len(s.Spec.Ports) == 0 && !buggy {
					return s.remove(&corev1.Service{ObjectMeta: s.child("")})
				}
				first := s.Spec.Ports[0]
				ports := []corev1.ServicePort{{Name: first.Name, Port: first.Port}}
				for _, port := range s.Spec.Ports[1:] {
					ports = append(ports, corev1.ServicePort{Name: port.Name, Port: port.Port})
				}
				return s.service(s.Name, ports)
			}
		},
	},
	{
		Name: "hot-loop", Category: "outage", Oracle: converge.OracleQuiescence,
		About: "The reconciler retries without a delay while a duration is invalid.",
		spec:  AppSpec{Timeout: "10s"}, fields: []string{"timeout"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				d, err := time.ParseDuration(s.Spec.Timeout)
				if err != nil {
					if buggy {
						s.result.RequeueAfter = time.Millisecond
						return nil
					}
					return errors.New("the timeout is not a duration")
				}
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["timeout"] = d.String()
					return nil
				})
			}
		},
	},
	{
		Name: "writes-for-ever", Category: "outage", Oracle: converge.OracleQuiescence,
		About: "A reconcile with an invalid value writes the time of its attempt, which leads to the next one.",
		spec:  AppSpec{Timeout: "10s", Replicas: new(int32(1))}, fields: []string{"timeout", "replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				d, err := time.ParseDuration(s.Spec.Timeout)
				if err != nil {
					s.Status.Message = "the timeout is not a duration"
					if buggy {
						s.Status.Peak++
						return nil
					}
					return errors.New(s.Status.Message)
				}
				s.Status.Message, s.Status.Peak = "", 0
				return s.deployment(func(deployment *appsv1.Deployment, c *corev1.Container) error {
					deployment.Spec.Replicas = new(replicas(s))
					c.Args = []string{"--timeout=" + d.String()}
					return nil
				})
			}
		},
	},
}
