// SPDX-License-Identifier: Apache-2.0

package states

import (
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/converge"
)

var errSize = errors.New("the size is not a quantity")

// errorStates are bugs that keep an object in an error state.
var errorStates = []Entry{
	{
		Name: "failed-for-ever", Category: "error", Oracle: converge.OraclePath,
		About: "After an invalid quantity the phase is Failed, and nothing is done in this phase, also after a repair.",
		spec:  AppSpec{Storage: "1Gi"}, fields: []string{"storage"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if buggy && s.Status.Phase == "Failed" {
					return errSize
				}
				size, err := resource.ParseQuantity(s.Spec.Storage)
				if err != nil {
					s.Status.Phase = "Failed"
					return errSize
				}
				s.Status.Phase = "Running"
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["size"] = size.String()
					return nil
				})
			}
		},
	},
	{
		Name: "message-stays", Category: "error", Oracle: converge.OraclePath,
		About: "The message of an error stays in the status after the error.",
		spec:  AppSpec{Timeout: "10s"}, fields: []string{"timeout"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				d, err := time.ParseDuration(s.Spec.Timeout)
				if err != nil {
					s.Status.Message = "the timeout is not a duration"
					return errors.New(s.Status.Message)
				}
				if !buggy {
					s.Status.Message = ""
				}
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["timeout"] = d.String()
					return nil
				})
			}
		},
	},
	{
		Name: "condition-stays", Category: "error", Oracle: converge.OraclePath,
		About: "The condition Degraded is set for an invalid value, and never removed.",
		spec:  AppSpec{Timeout: "10s"}, fields: []string{"timeout"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				d, err := time.ParseDuration(s.Spec.Timeout)
				if err != nil {
					apimeta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
						Type: "Degraded", Status: metav1.ConditionTrue, Reason: "InvalidTimeout",
					})
					return nil
				}
				if !buggy {
					apimeta.RemoveStatusCondition(&s.Status.Conditions, "Degraded")
				}
				return s.config(func(config *corev1.ConfigMap) error {
					config.Data["timeout"] = d.String()
					return nil
				})
			}
		},
	},
	{
		Name: "members-appended", Category: "error", Oracle: converge.OraclePath,
		About: "The status lists members of earlier specs.",
		spec:  AppSpec{Replicas: new(int32(2))}, fields: []string{"replicas"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				if !buggy {
					s.Status.Members = nil
				}
				for i := range replicas(s) {
					if name := fmt.Sprintf("%s-%d", s.Name, i); !slices.Contains(s.Status.Members, name) {
						s.Status.Members = append(s.Status.Members, name)
					}
				}
				return s.deployment(func(d *appsv1.Deployment, _ *corev1.Container) error {
					d.Spec.Replicas = new(replicas(s))
					return nil
				})
			}
		},
	},
	{
		Name: "pause-not-lifted", Category: "error", Oracle: converge.OraclePath,
		About: "A pause is recorded in an annotation that stays after the pause, and further changes are ignored.",
		spec:  AppSpec{Image: "example.com/app:v1"}, fields: []string{"image", "paused"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.deployment(func(d *appsv1.Deployment, c *corev1.Container) error {
					d.Spec.Paused = s.Spec.Paused || buggy && d.Spec.Paused
					c.Image = image(s)
					return nil
				})
			}
		},
	},
	{
		Name: "version-stuck", Category: "error", Oracle: converge.OraclePath,
		About: "A version that is lower than the present one is ignored without a message.",
		spec:  AppSpec{Version: "1.1.0"}, fields: []string{"version"},
		sync: func(buggy bool) func(*session) error {
			return func(s *session) error {
				return s.config(func(config *corev1.ConfigMap) error {
					if !buggy || s.Spec.Version > config.Data["version"] {
						config.Data["version"] = s.Spec.Version
					}
					return nil
				})
			}
		},
	},
}
