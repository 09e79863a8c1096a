// SPDX-License-Identifier: Apache-2.0

package states

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge"
)

// metadata are bugs with labels and annotations that users add to the object.
var metadata = []Entry{
	{
		Name: "object-labels-merged", Category: "undesired", Oracle: converge.OraclePath,
		About: "Labels of the object are passed on to the config map, and never removed from it.",
		spec:  AppSpec{Version: "1.1.0"}, fields: []string{"version"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["version"] = s.Spec.Version
					if !buggy {
						config.Labels = nil
					}
					for key, value := range s.Labels {
						metav1.SetMetaDataLabel(&config.ObjectMeta, key, value)
					}
					return nil
				})
			}
		},
	},
	{
		Name: "object-annotations-set-once", Category: "undesired", Oracle: converge.OraclePath,
		About: "Annotations of the object are passed on when the config map is created, and never again.",
		spec:  AppSpec{Version: "1.1.0"}, fields: []string{"version"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["version"] = s.Spec.Version
					if !buggy || config.CreationTimestamp.IsZero() {
						config.Annotations = maps.Clone(s.Annotations)
					}
					return nil
				})
			}
		},
	},
}
