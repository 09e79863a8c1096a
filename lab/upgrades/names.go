// SPDX-License-Identifier: Apache-2.0

package upgrades

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"trueup.dev/converge"
)

const (
	oldNames = "the old version does not know the new names"
	newLabel = "upgrades.trueup.dev/app"
)

var (
	oldLabels = map[string]string{"app": "a"}
	newLabels = map[string]string{newLabel: "a"}
)

// names are bugs with names, labels and selectors.
var names = []Entry{
	{
		Name: "renamed-child", About: "The new version gives the ConfigMap another name, and leaves the old one.",
		Oracle: converge.OracleEndState, noRollback: oldNames,
		old:   version{sync: func(s *session) error { return s.config("") }},
		buggy: version{sync: func(s *session) error { return s.config("-config") }},
		correct: version{sync: func(s *session) error {
			return errors.Join(s.config("-config"), s.removeConfig(""))
		}},
	},
	{
		Name:   "selector-in-place",
		About:  "The new version changes the selector of the Deployment, which the API server rejects indefinitely.",
		Oracle: converge.OracleQuiescence, masks: keptSelector,
		old: version{sync: func(s *session) error { return s.deployment(oldLabels, unchanged) }},
		buggy: version{sync: func(s *session) error {
			return s.deployment(newLabels, func(d *appsv1.Deployment) error {
				d.Spec.Selector = &metav1.LabelSelector{MatchLabels: newLabels}
				d.Spec.Template.Labels = newLabels
				return nil
			})
		}},
		correct: version{sync: func(s *session) error { return s.deployment(newLabels, unchanged) }},
	},
	{
		Name:   "selector-recreates",
		About:  "The new version deletes Deployments with the old selector and creates them again, which stops all pods.",
		Oracle: converge.OracleDuplicates, masks: keptSelector,
		old: version{sync: func(s *session) error { return s.deployment(oldLabels, unchanged) }},
		buggy: version{sync: func(s *session) error {
			d := &appsv1.Deployment{ObjectMeta: s.child("")}
			if err := s.Get(s.ctx, client.ObjectKeyFromObject(d), d); client.IgnoreNotFound(err) != nil {
				return err
			}
			if d.Spec.Selector != nil && d.Spec.Selector.MatchLabels[newLabel] == "" {
				return s.remove(d)
			}
			return s.deployment(newLabels, unchanged)
		}},
		correct: version{sync: func(s *session) error { return s.deployment(newLabels, unchanged) }},
	},
	{
		Name:   "label-of-children",
		About:  "The new version searches for its ConfigMap by another label, and tries to create the one that exists.",
		Oracle: converge.OracleQuiescence, noRollback: "the old version does not know the new label",
		old:   version{sync: func(s *session) error { return s.labeled("app", "app") }},
		buggy: version{sync: func(s *session) error { return s.labeled(newLabel, newLabel) }},
		correct: version{sync: func(s *session) error {
			return s.labeled(newLabel, "app", newLabel)
		}},
	},
	{
		Name: "renamed-job", About: "The new version gives a Job another name, so that the job runs again.",
		Oracle:  converge.OracleEndState,
		old:     version{sync: func(s *session) error { return s.job("-init") }},
		buggy:   version{sync: func(s *session) error { return s.job("-setup") }},
		correct: version{sync: func(s *session) error { return s.job("-init") }},
	},
}

var keptSelector = []converge.Mask{
	{Object: &appsv1.Deployment{}, Field: "spec.selector"},
	{Object: &appsv1.Deployment{}, Field: "spec.template.metadata.labels"},
}

// labeled keeps one ConfigMap. It searches for all that have one of some labels, and sets the
// first label alone.
func (s *session) labeled(label string, search ...string) error {
	var found []corev1.ConfigMap
	for _, l := range search {
		list := &corev1.ConfigMapList{}
		if err := s.List(s.ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{l: s.Name}); err != nil {
			return err
		}
		found = append(found, list.Items...)
	}
	wanted := map[string]string{label: s.Name}
	if len(found) == 0 {
		child := &corev1.ConfigMap{ObjectMeta: s.child(""), Data: map[string]string{"image": s.Spec.Image}}
		child.Labels = wanted
		if err := controllerutil.SetControllerReference(s.App, child, s.Scheme()); err != nil {
			return err
		}
		return s.Create(s.ctx, child)
	}
	child := &found[0]
	if child.Labels[label] == s.Name {
		return nil
	}
	child.Labels = wanted
	return s.Update(s.ctx, child)
}

// job runs a job once.
func (s *session) job(suffix string) error {
	return s.create(&batchv1.Job{ObjectMeta: s.child(suffix), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/job:v1"}},
		},
	}}})
}
