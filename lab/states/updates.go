// SPDX-License-Identifier: Apache-2.0

package states

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge"
)

// updates are bugs that ignore some changes.
var updates = []Entry{
	{
		Name: "scale-down-ignored", Category: "undesired", Oracle: converge.OraclePath,
		About: "A lower number of replicas is ignored.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					if want := replicas(s); !buggy || d.Spec.Replicas == nil || *d.Spec.Replicas < want {
						d.Spec.Replicas = &want
					}
					return nil
				})
			}
		},
	},
	{
		Name: "scale-to-zero-ignored", Category: "undesired", Oracle: converge.OraclePath,
		About: "Zero replicas are treated like a number that is not set.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					if want := replicas(s); !buggy || want > 0 {
						d.Spec.Replicas = &want
					}
					return nil
				})
			}
		},
	},
	{
		Name: "unset-keeps-the-value", Category: "undesired", Oracle: converge.OraclePath,
		About: "A field that is removed from the spec keeps its last value instead of the default.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					if s.Spec.Replicas != nil {
						d.Spec.Replicas = s.Spec.Replicas
					} else if !buggy {
						d.Spec.Replicas = new(int32(1))
					}
					return nil
				})
			}
		},
	},
	{
		Name: "set-only-at-creation", Category: "undesired", Oracle: converge.OraclePath,
		About: "The image is set when the deployment is created, and never again.",
		spec:  AppSpec{Image: "example.com/app:v1"}, fields: []string{"image"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, c *corev1.Container) error {
					if !buggy || d.CreationTimestamp.IsZero() {
						c.Image = image(s)
					}
					return nil
				})
			}
		},
	},
	{
		Name: "flag-never-cleared", Category: "undesired", Oracle: converge.OraclePath,
		About: "An annotation is set when a feature is enabled, and stays when it is disabled.",
		spec:  AppSpec{}, fields: []string{"metrics"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					if s.Spec.Metrics {
						metav1.SetMetaDataAnnotation(&config.ObjectMeta, "states.trueup.dev/metrics", "true")
					} else if !buggy {
						delete(config.Annotations, "states.trueup.dev/metrics")
					}
					return nil
				})
			}
		},
	},
	{
		Name: "list-compared-by-length", Category: "undesired", Oracle: converge.OraclePath,
		About: "A list of another content and the same length is not written.",
		spec:  AppSpec{Args: []string{"--verbose", "--fast"}}, fields: []string{"args"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					if !buggy || len(c.Args) != len(s.Spec.Args) {
						c.Args = slices.Clone(s.Spec.Args)
					}
					return nil
				})
			}
		},
	},
	{
		Name: "only-longer-maps", Category: "undesired", Oracle: converge.OraclePath,
		About: "Configuration is compared key by key of the old one, so that new keys are missing.",
		spec:  AppSpec{Config: map[string]string{"level": "info"}}, fields: []string{"config"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					changed := len(config.Data) == 0
					for key, value := range config.Data {
						changed = changed || s.Spec.Config[key] != value
					}
					if changed || !buggy {
						config.Data = maps.Clone(s.Spec.Config)
					}
					return nil
				})
			}
		},
	},
	{
		Name: "hash-not-updated", Category: "undesired", Oracle: converge.OraclePath,
		About: "Pods are not restarted when the configuration changes: its hash in the pod template stays.",
		spec:  AppSpec{Config: map[string]string{"level": "info"}}, fields: []string{"config"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if err := s.config(func(config *corev1.ConfigMap) error {
					config.Data = maps.Clone(s.Spec.Config)
					return nil
				}); err != nil {
					return err
				}
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					if _, ok := d.Spec.Template.Annotations["hash"]; !buggy || !ok {
						metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "hash", hashOf(s.Spec.Config))
					}
					return nil
				})
			}
		},
	},
	{
		Name: "selector-immutable", Category: "outage", Oracle: converge.OraclePath,
		About: "Labels of the spec are part of the selector of a deployment, which cannot change: updates fail indefinitely.",
		spec:  AppSpec{Labels: map[string]string{"team": "a"}}, fields: []string{"labels"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					labels := map[string]string{appLabel: s.Name}
					maps.Copy(labels, s.Spec.Labels)
					d.Spec.Template.Labels = labels
					if buggy {
						d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
					}
					return nil
				})
			}
		},
	},
	{
		Name: "job-immutable", Category: "outage", Oracle: converge.OraclePath,
		About: "The pod template of a job cannot change: updates of the image fail indefinitely.",
		spec:  AppSpec{Image: "example.com/app:v1"}, fields: []string{"image"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				job := &batchv1.Job{ObjectMeta: s.child("")}
				if !buggy {
					job.Name += "-" + hashOf(map[string]string{"image": image(s)})
					jobs := &batchv1.JobList{}
					if err := s.List(s.ctx, jobs); err != nil {
						return err
					}
					for _, old := range jobs.Items {
						if old.Name != job.Name {
							if err := s.remove(&old); err != nil {
								return err
							}
						}
					}
				}
				return s.ensure(job, func() error {
					if len(job.Spec.Template.Spec.Containers) == 0 {
						job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
						job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
					}
					job.Spec.Template.Spec.Containers[0].Image = image(s)
					return nil
				})
			}
		},
	},
	{
		Name: "config-per-hash-left", Category: "undesired", Oracle: converge.OraclePath,
		About: "Each configuration gets a config map of its own, and the old ones stay.",
		spec:  AppSpec{Config: map[string]string{"level": "info"}}, fields: []string{"config"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				config := &corev1.ConfigMap{ObjectMeta: s.child("-" + hashOf(s.Spec.Config))}
				name := config.Name
				if err := s.ensure(config, func() error {
					config.Data = maps.Clone(s.Spec.Config)
					return nil
				}); err != nil || buggy {
					return err
				}
				old := &corev1.ConfigMapList{}
				if err := s.List(s.ctx, old); err != nil {
					return err
				}
				for _, config := range old.Items {
					if config.Name != name {
						if err := s.remove(&config); err != nil {
							return err
						}
					}
				}
				return nil
			}
		},
	},
	{
		Name: "timeout-ignored", Category: "ignored", Oracle: converge.OracleEffect,
		About: "A property is part of the schema and never read.",
		spec:  AppSpec{Image: "example.com/app:v1", Timeout: "30s"}, fields: []string{"image", "timeout"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(_ *appsv1.Deployment, c *corev1.Container) error {
					c.Image = image(s)
					if !buggy {
						c.Args = []string{"--timeout=" + s.Spec.Timeout}
					}
					return nil
				})
			}
		},
	},
	{
		Name: "highest-ever", Category: "undesired", Oracle: converge.OraclePath,
		About: "The status has the highest number of replicas ever as the number of members.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				want := replicas(s)
				if buggy {
					want = max(want, s.Status.Peak)
				}
				s.Status.Peak = want
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					d.Spec.Replicas = new(replicas(s))
					return nil
				})
			}
		},
	},
	{
		Name: "storage-grows-only-once", Category: "undesired", Oracle: converge.OraclePath,
		About: "A claim keeps its first size, although the recorded one is that of the spec.",
		spec:  AppSpec{Storage: "1Gi"}, fields: []string{"storage"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				size, err := resource.ParseQuantity(s.Spec.Storage)
				if err != nil || size.Sign() <= 0 {
					size = resource.MustParse("1Gi")
				}
				return s.config(func(config *corev1.ConfigMap) error {
					if _, ok := config.Data["size"]; !ok || !buggy {
						config.Data["size"] = size.String()
					}
					return nil
				})
			}
		},
	},
}

func image(s *session) string {
	if s.Spec.Image == "" {
		return "example.com/app:v1"
	}
	return s.Spec.Image
}

func hashOf(values map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%q=%q;", key, values[key])
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.String()))
	return fmt.Sprintf("%x", h.Sum32())
}
