// SPDX-License-Identifier: Apache-2.0

package states

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

// removals are bugs that leave something behind.
var removals = []Entry{
	{
		Name: "labels-merged", Category: "undesired", Oracle: converge.OraclePath,
		About: "A label that is removed from the spec stays on the child.",
		spec:  AppSpec{Labels: map[string]string{"team": "a"}}, fields: []string{"labels"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					labels := map[string]string{appLabel: s.Name}
					if buggy && config.Labels != nil {
						labels = config.Labels
					}
					maps.Copy(labels, s.Spec.Labels)
					config.Labels = labels
					return nil
				})
			}
		},
	},
	{
		Name: "annotations-merged", Category: "undesired", Oracle: converge.OraclePath,
		About: "An annotation that is removed from the spec stays on the pod template.",
		spec:  AppSpec{}, fields: []string{"config"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					if !buggy {
						d.Spec.Template.Annotations = nil
					}
					for key, value := range s.Spec.Config {
						metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "states.trueup.dev/"+key, value)
					}
					return nil
				})
			}
		},
	},
	{
		Name: "variables-merged", Category: "undesired", Oracle: converge.OraclePath,
		About: "An environment variable that is removed from the spec stays in the container.",
		spec:  AppSpec{Env: []Variable{{"LEVEL", "info"}}}, fields: []string{"env"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					env := []corev1.EnvVar{}
					if buggy {
						env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
							return slices.ContainsFunc(s.Spec.Env, func(wanted Variable) bool { return wanted.Name == v.Name })
						})
					}
					for _, v := range s.Spec.Env {
						env = append(env, corev1.EnvVar{Name: v.Name, Value: v.Value})
					}
					slices.SortFunc(env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
					c.Env = env
					return nil
				})
			}
		},
	},
	{
		Name: "arguments-appended", Category: "undesired", Oracle: converge.OraclePath,
		About: "An argument of an earlier spec stays in the command line.",
		spec:  AppSpec{Args: []string{"--verbose"}}, fields: []string{"args"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					if !buggy {
						c.Args = slices.Clone(s.Spec.Args)
						return nil
					}
					for _, arg := range s.Spec.Args {
						if !slices.Contains(c.Args, arg) {
							c.Args = append(c.Args, arg)
						}
					}
					return nil
				})
			}
		},
	},
	{
		Name: "feature-disabled", Category: "undesired", Oracle: converge.OraclePath,
		About: "The service for metrics stays when metrics are disabled.",
		spec:  AppSpec{Metrics: true}, fields: []string{"metrics"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				name := s.Name + "-metrics"
				switch {
				case s.Spec.Metrics:
					return s.service(name, []corev1.ServicePort{{Name: "metrics", Port: 9090}})
				case buggy:
					return nil
				}
				return s.remove(&corev1.Service{ObjectMeta: s.child("-metrics")})
			}
		},
	},
	{
		Name: "optional-part-removed", Category: "undesired", Oracle: converge.OraclePath,
		About: "The volume of a certificate stays in the pod when TLS is removed.",
		spec:  AppSpec{TLS: &TLS{"certificate"}}, fields: []string{"tls"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					pod := &d.Spec.Template.Spec
					if s.Spec.TLS == nil {
						if !buggy {
							pod.Volumes = nil
						}
						return nil
					}
					if len(pod.Volumes) == 0 {
						pod.Volumes = []corev1.Volume{{
							Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}},
						}}
					}
					pod.Volumes[0].Secret.SecretName = s.Spec.TLS.SecretName
					return nil
				})
			}
		},
	},
	{
		Name: "renamed-child", Category: "undesired", Oracle: converge.OraclePath,
		About: "The old service stays when the name of the service changes.",
		spec:  AppSpec{ServiceName: "web"}, fields: []string{"serviceName"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				name := s.Spec.ServiceName
				if name == "" {
					name = s.Name
				}
				if err := s.service(name, []corev1.ServicePort{{Name: "http", Port: 80}}); err != nil || buggy {
					return err
				}
				services := &corev1.ServiceList{}
				if err := s.List(
					s.ctx, services, client.InNamespace(s.Namespace), client.MatchingLabels{appLabel: s.Name},
				); err != nil {
					return err
				}
				for _, service := range services.Items {
					if service.Name != name {
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
		Name: "ports-merged", Category: "undesired", Oracle: converge.OraclePath,
		About: "A port that is removed from the spec stays in the service.",
		spec:  AppSpec{Ports: []Port{{"http", 80}, {"admin", 8080}}}, fields: []string{"ports"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				service := &corev1.Service{ObjectMeta: s.child("")}
				if len(s.Spec.Ports) == 0 {
					return s.remove(service)
				}
				return s.ensure(service, func() error {
					service.Spec.Selector = map[string]string{appLabel: s.Name}
					merged := map[string]corev1.ServicePort{}
					if buggy {
						for _, port := range service.Spec.Ports {
							merged[port.Name] = port
						}
					}
					for _, port := range s.Spec.Ports {
						merged[port.Name] = corev1.ServicePort{
							Name: port.Name, Port: port.Port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(port.Port),
						}
					}
					service.Spec.Ports = nil
					for _, name := range slices.Sorted(maps.Keys(merged)) {
						service.Spec.Ports = append(service.Spec.Ports, merged[name])
					}
					return nil
				})
			}
		},
	},
	{
		Name: "members-not-removed", Category: "undesired", Oracle: converge.OraclePath,
		About: "Members above the number of replicas are not removed after scaling down.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				want := replicas(s)
				for i := range want {
					member := &corev1.ConfigMap{ObjectMeta: s.child(fmt.Sprint("-", i))}
					if err := s.ensure(member, func() error { return nil }); err != nil {
						return err
					}
				}
				for i := want; i < 5 && !buggy; i++ {
					if err := s.remove(&corev1.ConfigMap{ObjectMeta: s.child(fmt.Sprint("-", i))}); err != nil {
						return err
					}
				}
				return nil
			}
		},
	},
	{
		Name: "wrong-member-removed", Category: "undesired", Oracle: converge.OraclePath,
		About: "Scaling down removes the first member instead of the last one.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				want := int(replicas(s))
				members := &corev1.ConfigMapList{}
				if err := s.List(s.ctx, members, client.InNamespace(s.Namespace)); err != nil {
					return err
				}
				slices.SortFunc(members.Items, func(a, b corev1.ConfigMap) int { return strings.Compare(b.Name, a.Name) })
				if buggy {
					slices.Reverse(members.Items)
				}
				for i := range max(len(members.Items)-want, 0) {
					if err := s.remove(&members.Items[i]); err != nil {
						return err
					}
				}
				for i := range want {
					if buggy && i < len(members.Items) {
						continue
					}
					if err := s.ensure(
						&corev1.ConfigMap{ObjectMeta: s.child(fmt.Sprint("-", i))}, func() error { return nil },
					); err != nil {
						return err
					}
				}
				return nil
			}
		},
	},
	{
		Name: "record-of-the-old-host", Category: "undesired", Oracle: converge.OraclePath,
		About: "The record of the old host stays in an external system when the host changes.",
		spec:  AppSpec{Host: "www.example.com"}, fields: []string{"host"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if controllerutil.AddFinalizer(s.App, finalizer) {
					if err := s.Update(s.ctx, s.App); err != nil {
						return err
					}
				}
				key := ""
				if s.Spec.Host != "" {
					key = s.Name + "/" + s.Spec.Host
					if err := s.cloud.Put(s.ctx, key, "record"); err != nil {
						return err
					}
				}
				if buggy && key != "" {
					return nil
				}
				return s.removeRecords(s.ctx, s.App, key)
			}
		},
	},
	{
		Name: "other-mode", Category: "undesired", Oracle: converge.OraclePath,
		About: "The deployment of the mode service stays in the mode batch.",
		spec:  AppSpec{Mode: "service"}, fields: []string{"mode"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if s.Spec.Mode != "batch" {
					if err := s.remove(&corev1.ConfigMap{ObjectMeta: s.child("")}); err != nil {
						return err
					}
					return s.deployment(func(*appsv1.Deployment, *corev1.Container) error { return nil })
				}
				if !buggy {
					if err := s.remove(&appsv1.Deployment{ObjectMeta: s.child("")}); err != nil {
						return err
					}
				}
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["mode"] = s.Spec.Mode
					return nil
				})
			}
		},
	},
}

// replicas returns the wanted number of replicas.
func replicas(s *session) int32 {
	if s.Spec.Replicas == nil {
		return 1
	}
	return *s.Spec.Replicas
}
